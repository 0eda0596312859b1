// Probes 81 to 84: the way out of a profile that has one leads to what was granted, and of the others there is none.
import { finds, stops, type Attempt } from '../attempt.ts'
import { proxyPort } from '../../lib/own-variables.ts'
import { doorTarget } from '../../sandbox/spec.ts'
import { ask, atDoor, connects, hearsOf, nobodyThere, resolver, says, toNobody, types } from './asking.ts'
import type { Probe, Scene, Trial } from '../probe.ts'

/** A class of names beside the internet's. */
const chaos = 3

const isShut = ({ spec }: Scene): boolean => spec.network.mode === 'none'

const asksOutside = ({ wayOut }: Scene, by: readonly string[] = []): Attempt[] => [
  stops(
    ['dns', '127.0.0.1', `${wayOut.resolverPort}`, 'not-granted.test', `${types.A}`],
    by,
    'a name server outside',
  ),
]

/** What somebody says to the server itself, where no proxy is between. */
const serverOutside = ({ wayOut }: Scene): Attempt[] => [
  finds(
    ['exchange', '127.0.0.1', `${wayOut.grant.port}`, 'GET / HTTP/1.1\\r\\n\\r\\n'],
    (text) => (text.includes(wayOut.greeting) ? 'the server answers' : null),
    'the server, without a proxy',
  ),
]

/** Spellings of this machine and of granted names that are neither. */
const hostile = (granted: string): readonly string[] => [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f.1',
  '017700000001',
  '[::1]',
  '[::ffff:127.0.0.1]',
  'localhost',
  '169.254.169.254',
  'metadata.google.internal',
  `${granted}.evil.test`,
  `evil-${granted}`,
  `127.0.0.1%00.${granted}`,
  `127.0.0.1#.${granted}`,
  `${granted}@127.0.0.1`,
  `${granted}\\n127.0.0.1`,
]

/** Addresses that lead to this machine, as numbers. */
const spellings = ['127.0.0.1', '127.0.0.2', '0.0.0.0'] as const

const withoutNetwork = (attempts: readonly Attempt[], outside: readonly Attempt[]): Trial => ({
  expected: 'nobody there: the profile has no network',
  attempts,
  outside,
})

export const egressProbes: readonly Probe[] = [
  {
    id: 'network.names',
    number: 81,
    group: 'network',
    protects: 'A name that was not granted is not resolved, and no name carries data out.',
    control: 'resolver',
    trial(scene) {
      const { host } = scene.wayOut.grant
      if (isShut(scene))
        return withoutNetwork(
          [ask('not-granted.sallyport.test', types.A, nobodyThere), ...asksOutside(scene, nobodyThere)],
          asksOutside(scene),
        )
      // Denied, so that clients stop at once; of a granted name nothing but its address; no list of names for anybody.
      const [denied, nothing, refused] = [['ENOENT'], ['ENODATA'], ['EACCES']] as const
      const [label] = ['d'.repeat(60)]
      return {
        expected: 'the granted name, and for all else a refusal',
        attempts: [
          finds(['dns', resolver, '53', host, `${types.A}`], () => null, `name ${host}, granted`),
          ask('not-granted.sallyport.test', types.A, denied),
          ask('metadata.google.internal', types.A, denied),
          ask(`${label}.${label}.${label}.evil.test`, types.A, denied),
          ask(`x.${host}`, types.A, denied),
          ask(host, types.TXT, nothing),
          ask(host, types.AXFR, refused),
          stops(
            ['dns', resolver, '53', host, `${types.A}`, `${chaos}`],
            refused,
            `name ${host}, of another class`,
          ),
          stops(['datagram', '192.0.2.1', '53'], ['EPERM'], 'a datagram to another name server'),
        ],
        outside: asksOutside(scene),
      }
    },
  },
  {
    id: 'network.grants',
    number: 82,
    group: 'network',
    protects: 'What was granted is reached, at its own port; other ports of it and other hosts are not.',
    control: 'proxy',
    trial(scene) {
      const { canaries, wayOut } = scene
      const { host, port } = wayOut.grant
      if (isShut(scene))
        return withoutNetwork(
          [
            stops(['tcp', '127.0.0.1', `${proxyPort}`], nobodyThere),
            stops(['stat', doorTarget], ['ENOENT']),
            stops(['tcp', '127.0.0.1', `${scene.wayOut.grant.port}`], nobodyThere),
          ],
          serverOutside(scene),
        )
      return {
        expected: `an answer from ${host}:${port}, and from nobody else`,
        attempts: [
          finds(
            [
              'exchange',
              '127.0.0.1',
              `${proxyPort}`,
              `GET http://${host}:${port}/ HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\nConnection: close\\r\\n\\r\\n`,
            ],
            (text) =>
              text.includes(wayOut.greeting) ? null : `no answer from the granted host: ${text.slice(0, 60)}`,
            `GET http://${host}:${port}/`,
          ),
          connects(host, canaries.port),
          connects('other.sallyport.test', port),
          finds(
            ['mode', doorTarget],
            (text) => (text === '600' ? null : `mode ${text}`),
            'the door is one user’s',
          ),
        ],
        outside: serverOutside(scene),
      }
    },
  },
  {
    id: 'network.listeners',
    number: 83,
    group: 'network',
    protects:
      'A server does not take the place of the proxy or the name server for other programs beside it.',
    control: 'relay',
    trial(scene) {
      const free = [stops(['bind', '127.0.0.1', '0'], [], 'an address that nobody has')]
      if (isShut(scene))
        return withoutNetwork(
          [proxyPort, scene.canaries.port].map((port) => stops(['tcp', '127.0.0.1', `${port}`], nobodyThere)),
          free,
        )
      return {
        expected: 'EADDRINUSE for each',
        attempts: [
          stops(['bind', '127.0.0.1', `${proxyPort}`], ['EADDRINUSE']),
          stops(['bind', resolver, '53'], ['EADDRINUSE', 'EACCES']),
        ],
        outside: free,
      }
    },
  },
  {
    id: 'network.hostile-names',
    number: 84,
    group: 'network',
    protects:
      'No spelling of an address or a name gets past the list of what was granted, and no granted name leads inwards.',
    control: 'proxy',
    trial(scene) {
      const { canaries, wayOut } = scene
      if (isShut(scene))
        return withoutNetwork(
          [
            ...hostile(wayOut.grant.host)
              .map((host) => connects(host, wayOut.grant.port))
              .map(toNobody),
            stops(atDoor(wayOut.grant.host, wayOut.grant.port), ['ENOENT'], 'at the door: the granted host'),
            ...spellings.map((address) => stops(['tcp', address, `${wayOut.grant.port}`], nobodyThere)),
          ],
          serverOutside(scene),
        )
      return {
        expected: 'a refusal for each, at the proxy and at the door itself',
        attempts: [
          connects(wayOut.behind.inward.host, wayOut.grant.port),
          ...hostile(wayOut.grant.host).flatMap((host) => [
            connects(host, canaries.port),
            connects(host, wayOut.grant.port),
          ]),
          finds(
            atDoor(wayOut.grant.host, wayOut.grant.port),
            (text) => (text.includes(wayOut.greeting) ? null : `no answer: ${text.slice(0, 60)}`),
            'at the door: the granted host',
          ),
          ...[wayOut.behind.inward.host, '127.0.0.1', 'other.sallyport.test', 'localhost'].map((host) =>
            says(host, wayOut.grant.port, wayOut.greeting),
          ),
          hearsOf('why they were refused there', wayOut, () => [
            `address-refused:loopback ${wayOut.behind.inward.host}:${wayOut.grant.port}`,
            'name-invalid 127.0.0.1',
            ...['other.sallyport.test', 'localhost'].map(
              (host) => `name-not-listed ${host}:${wayOut.grant.port}`,
            ),
          ]),
        ],
        outside: serverOutside(scene),
      }
    },
  },
]
