// Probes 135 and 136: a pattern lets below its name what it says and nothing beside it, and no pattern is for all of a domain.
import { finds, refusesLaunch, stops, type Attempt } from '../attempt.ts'
import { besides, wildPattern } from '../lab/behind.ts'
import { withoutNetworkThereIs } from '../gvisor/inapplicable.ts'
import type { Lab } from '../lab/lab.ts'
import type { Probe, Scene } from '../probe.ts'
import { ask, atDoor, hearsOf, resolver, says, types } from './asking.ts'

/** More names than there are addresses for. */
const names = 300
const mostAddresses = 256

/** The launch of a server whose entry has a pattern as well. */
const withPattern = (lab: Lab, host: string): Lab => {
  const { egress } = lab.server
  return {
    ...lab,
    server: { ...lab.server, egress: [...egress, ...egress.slice(-1).map((grant) => ({ ...grant, host }))] },
  }
}

/** Below the name: one label, several, and one that is written in another script. */
const below = ['a', 'b.a', 'xn--bcher-kva'] as const

const atPattern = ({ wayOut }: Scene): readonly Attempt[] => {
  const { host: pattern, port } = wayOut.behind.wild
  const name = pattern.slice(2)
  const known = below.map((label) => `${label}.${name}`)
  const unknown = [...besides, `a b.${name}`, `a%00.${name}`, `a.${name}.evil.test`, `wild.${name}.test`]
  const unlisted = [...besides, `a.${name}.evil.test`]
  const invalid = [`.${name}`, `a..${name}`, `xn--a.${name}`]
  const refused = [...unlisted, `${name}.`, ...invalid]
  const [own = ''] = known
  const otherPort = port === 65_535 ? 1 : port + 1
  return [
    ...known.map((host) =>
      finds(['dns', resolver, '53', host, `${types.A}`], () => null, `name ${host}, below`),
    ),
    ...unknown.map((host) => ask(host, types.A, ['ENOENT'])),
    ...known.map((host) =>
      finds(
        atDoor(host, port),
        (text) => (text.includes(wayOut.greeting) ? null : `no answer: ${text.slice(0, 60)}`),
        `at the door: ${host}, below`,
      ),
    ),
    ...refused.map((host) => says(host, port, wayOut.greeting)),
    says(own, otherPort, wayOut.greeting),
    hearsOf('why they were refused there', wayOut, () => [
      ...unlisted.map((host) => `name-not-listed ${host}:${port}`),
      ...invalid.map((host) => `name-invalid ${host}`),
      `port-not-listed ${own}:${otherPort}`,
    ]),
    finds(
      ['dns-many', resolver, name, `${names}`],
      (text) => {
        const [answered = 0, addresses = 0] = text.split(' ').map(Number)
        return answered > 0 && answered <= mostAddresses && addresses === answered ? null : text
      },
      `${names} names below ${name}`,
    ),
  ]
}

const shut = withoutNetworkThereIs('no pattern', 'nothing is granted')

/** What a name server that knows every name answers. */
const asksOutside = ({ wayOut }: Scene): Attempt =>
  stops(
    ['dns', '127.0.0.1', `${wayOut.resolverPort}`, besides[0] ?? '', `${types.A}`],
    [],
    'a name server outside',
  )

export const patternProbes: readonly Probe[] = [
  {
    id: 'network.patterns',
    number: 135,
    group: 'network',
    protects: 'A pattern is for names below its own: not for that itself, nor for one that ends alike.',
    control: 'patterns',
    isAlone: true,
    within: (lab) => withPattern(lab, wildPattern),
    trial: (scene) =>
      scene.spec.network.mode === 'none'
        ? shut
        : {
            expected: 'names below it, each with an address of its own, and for all else a refusal',
            attempts: atPattern(scene),
            outside: [asksOutside(scene)],
          },
  },
  {
    id: 'network.broad-patterns',
    number: 136,
    group: 'network',
    protects: 'Nobody is granted all names of a top-level domain.',
    control: 'patterns',
    isAlone: true,
    endsBy: 'refused',
    within: (lab) => ({
      ...withPattern(lab, lab.broad.pattern),
      openDoor: lab.broad.doorFor(lab.broad.pattern),
    }),
    trial: (scene) =>
      scene.spec.network.mode === 'none'
        ? shut
        : {
            expected: 'refused before anything is started',
            attempts: [
              refusesLaunch(
                ['dns', resolver, '53', 'anybody.sallyport.test', `${types.A}`],
                /two labels/,
                'a pattern of one label',
              ),
            ],
            outside: [asksOutside(scene)],
          },
  },
]
