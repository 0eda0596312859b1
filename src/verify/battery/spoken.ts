// Probe 131: what is said on a connection that was granted is for the host that it was granted for, and for no other behind it.
import { proxyPort } from '../../lib/own-variables.ts'
import { doorTarget } from '../../sandbox/spec.ts'
import type { EgressGrant } from '../../schema/egress.ts'
import { finds, stopsOrFinds, type Attempt } from '../attempt.ts'
import { oddHellos, plainHello } from '../lab/hello.ts'
import type { Probe, Scene } from '../probe.ts'
import { toNobody } from './asking.ts'

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
    saying(wayOut, 'a Host on another port', proxy, get('GET', `Host: ${host}`, end)),
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

/** More than one request on a connection that is for the granted host, of which the second is for another. */
const after = (wayOut: Scene['wayOut']): readonly Attempt[] => {
  const { host, port } = wayOut.grant
  const own = `Host: ${host}:${port}`
  const theirs = `GET / HTTP/1.1${line}Host: ${other}${line}${line}`
  const to = `SP1 connect ${host} ${port}\\n`
  const get = (...fields: readonly string[]): string => ['GET / HTTP/1.1', ...fields, '', ''].join(line)
  const post = (...fields: readonly string[]): string =>
    ['POST / HTTP/1.1', own, ...fields, '', ''].join(line)
  return [
    saying(wayOut, 'a second request, for another', door, `${to}${get(own)}${theirs}`),
    saying(wayOut, 'a body, and a request for another', door, `${to}${post('Content-Length: 2')}ab${theirs}`),
    saying(
      wayOut,
      'a chunked body, and a request for another',
      door,
      `${to}${post('Transfer-Encoding: chunked')}0${line}${line}${theirs}`,
    ),
    saying(
      wayOut,
      'a body of two lengths',
      door,
      `${to}${post('Content-Length: 40', 'Transfer-Encoding: chunked')}0${line}${line}`,
    ),
    ...[
      ['a length with a sign', 'Content-Length: +2'],
      ['a coding before the chunks', 'Transfer-Encoding: gzip, chunked'],
    ].map(([label = '', field = '']) => saying(wayOut, label, door, `${to}${post(field)}`)),
    saying(
      wayOut,
      'a chunk that says more than its size',
      door,
      `${to}${post('Transfer-Encoding: chunked')}0;a=b${line}${line}`,
    ),
    saying(
      wayOut,
      'a request that names another by itself',
      door,
      `${to}${['GET http://other.sallyport.test/ HTTP/1.1', own, '', ''].join(line)}`,
    ),
    saying(wayOut, 'CONNECT in a tunnel', door, `${to}${['CONNECT / HTTP/1.1', own, '', ''].join(line)}`),
    saying(
      wayOut,
      'CONNECT with a body',
      proxy,
      `${[`CONNECT ${host}:${port} HTTP/1.1`, own, 'Content-Length: 0', '', ''].join(line)}${get(own)}`,
    ),
    finds(
      [
        'exchange',
        ...proxy,
        [`GET http://${host}:${port}/ HTTP/1.1`, own, 'Proxy-Authorization: Basic eA==', '', ''].join(line),
      ],
      (text) => (text.includes(wayOut.greeting) ? null : `no answer: ${text.slice(0, 60)}`),
      'what is for the proxy alone, which the server takes amiss',
    ),
    saying(
      wayOut,
      'a protocol that is not taken up, and a request for another',
      door,
      `${to}${get(own, 'Connection: upgrade', 'Upgrade: x')}${theirs}`,
    ),
    saying(
      wayOut,
      'a request at the proxy, and one behind it',
      proxy,
      `GET http://${host}:${port}/ HTTP/1.1${line}${own}${line}${line}${theirs}`,
    ),
    finds(
      ['exchange', ...door, `SP1 connect ${host} ${wayOut.behind.plain.port}\\n${theirs}`],
      (text) => (text.includes('host-mismatch') ? null : `dialled: ${text.slice(0, 60)}`),
      'on the port of HTTP, a request for another',
    ),
  ]
}

const hellos = (wayOut: Scene['wayOut']): readonly Attempt[] => {
  const { grant, behind, hello, otherHello } = wayOut
  const { secure } = behind
  const of = ({ host, port }: EgressGrant): string => `SP1 connect ${host} ${port}\\n`
  const answered = (label: string, to: EgressGrant, bytes: Buffer): Attempt =>
    finds(
      ['exchange', ...door, `${of(to)}${escapedBytes(bytes)}`],
      (text) => (text.includes(wayOut.greeting) ? null : `no answer: ${text.slice(0, 60)}`),
      label,
    )
  const refused = (label: string, to: EgressGrant, bytes: Buffer): Attempt =>
    saying(wayOut, label, door, `${of(to)}${escapedBytes(bytes)}`)
  const odd = (where: string, to: EgressGrant): readonly Attempt[] =>
    Object.entries(oddHellos(to.host, other)).map(([label, bytes]) =>
      refused(`${where}, ${label}`, to, bytes),
    )
  return [
    saying(
      wayOut,
      'on a port of TLS, no TLS',
      door,
      `${of(secure)}GET / HTTP/1.1${line}Host: ${secure.host}:${secure.port}${line}${line}`,
    ),
    refused('on a port of TLS, TLS for another name', secure, otherHello),
    ...odd('on a port of TLS', secure),
    answered('on a port of TLS, TLS for its name', secure, hello),
    refused('on another port, TLS for another name', grant, otherHello),
    ...odd('on another port', grant),
    answered('on another port, TLS for its name', grant, plainHello(grant.host)),
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
      const attempts = [...requests(wayOut), ...after(wayOut), ...hellos(wayOut)]
      const plain = saying(
        wayOut,
        'a request whose Host is another, without a proxy',
        ['127.0.0.1', `${wayOut.grant.port}`],
        `GET / HTTP/1.1${line}Host: ${other}${line}${line}`,
      )
      if (spec.network.mode === 'none')
        return {
          expected: 'nobody there: the profile has no network',
          attempts: [...attempts, plain].map(toNobody),
          outside: [plain],
        }
      return { expected, attempts, outside: [plain] }
    },
  },
]
