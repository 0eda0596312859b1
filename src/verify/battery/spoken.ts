// Probe 131: what is said on a connection that was granted is for the host that it was granted for, and for no other behind it.
import { finds, stopsOrFinds, type Attempt } from '../attempt.ts'
import { proxyPort } from '../../sandbox/network.ts'
import { doorTarget } from '../../sandbox/spec.ts'
import type { Probe, Scene } from '../probe.ts'

const lost = ['ECONNRESET', 'EPIPE'] as const
const line = '\\r\\n'
const other = 'other.sallyport.test'

const saying = (
  { greeting }: Scene['wayOut'],
  label: string,
  at: readonly [address: string, port: string],
  words: string,
): Attempt =>
  stopsOrFinds(
    ['exchange', ...at, words],
    lost,
    (text) => (text.includes(greeting) ? 'the server answers' : null),
    label,
  )

const proxy = ['127.0.0.1', `${proxyPort}`] as const
const door = [doorTarget, '0'] as const

const escapedBytes = (bytes: Buffer): string => bytes.toString('hex').replace(/../g, '\\x$&')

/** Requests to the granted host that some reader would take for another's, or for another request. */
const requests = (wayOut: Scene['wayOut']): readonly Attempt[] => {
  const { host, port } = wayOut.grant
  const own = `${host}:${port}`
  const get = (method: string, ...fields: readonly string[]): string =>
    [`${method} http://${own}/ HTTP/1.1`, ...fields, '', ''].join(line)
  const tunnel = `CONNECT ${own} HTTP/1.1${line}Host: ${own}${line}${line}`
  const end = 'Connection: close'
  return [
    saying(wayOut, 'a request whose Host is another', proxy, get('GET', `Host: ${other}`, end)),
    saying(wayOut, 'a request with two Hosts', proxy, get('GET', `Host: ${own}`, `Host: ${other}`, end)),
    saying(wayOut, 'TRACE, which gives back what was added', proxy, get('TRACE', `Host: ${own}`, end)),
    saying(wayOut, 'a field over two lines', proxy, get('GET', `Host: ${own}`, 'X: a', ' b', end)),
    saying(wayOut, 'a Host for this hop alone', proxy, get('GET', `Host: ${own}`, 'Connection: host')),
    saying(
      wayOut,
      'CONNECT whose Host is another',
      proxy,
      [
        `CONNECT ${own} HTTP/1.1`,
        `Host: ${other}:${port}`,
        '',
        `GET / HTTP/1.1`,
        `Host: ${own}`,
        '',
        '',
      ].join(line),
    ),
    saying(
      wayOut,
      'in a tunnel, a request for another',
      proxy,
      `${tunnel}${['GET / HTTP/1.1', `Host: ${other}`, '', ''].join(line)}`,
    ),
    saying(wayOut, 'nothing that opens a connection', door, `GET / HTTP/1.1${line}${line}`),
  ]
}

const hellos = (wayOut: Scene['wayOut']): readonly Attempt[] => {
  const { port } = wayOut.grant
  const { host, hello, otherHello } = wayOut.secure
  const to = `SP1 connect ${host} ${port}\\n`
  return [
    saying(
      wayOut,
      'on a port of TLS, no TLS',
      door,
      `${to}GET / HTTP/1.1${line}Host: ${host}:${port}${line}${line}`,
    ),
    saying(wayOut, 'on a port of TLS, TLS for another name', door, `${to}${escapedBytes(otherHello)}`),
    finds(
      ['exchange', ...door, `${to}${escapedBytes(hello)}`],
      (text) => (text.includes(wayOut.greeting) ? null : `no answer: ${text.slice(0, 60)}`),
      'on a port of TLS, TLS for its name',
    ),
  ]
}

export const spokenProbes: readonly Probe[] = [
  {
    id: 'network.spoken',
    number: 131,
    group: 'network',
    protects:
      'On a connection to a granted host nothing is asked of another host that is reached by the same address.',
    control: 'spoken-names',
    trial({ spec, wayOut }) {
      const expected = 'a refusal for each, and an answer to TLS for the granted name'
      if (spec.network.mode === 'none')
        return { expected, attempts: [], settled: 'the profile has no network: nobody is there to ask' }
      return {
        expected,
        attempts: [...requests(wayOut), ...hellos(wayOut)],
        outside: [
          saying(
            wayOut,
            'a request whose Host is another, without a proxy',
            ['127.0.0.1', `${wayOut.grant.port}`],
            `GET / HTTP/1.1${line}Host: ${other}${line}${line}`,
          ),
        ],
      }
    },
  },
]
