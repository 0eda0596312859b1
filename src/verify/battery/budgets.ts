// Probe 137: so many connections at once, and of each so many bytes, so long a silence, and so long a life.
import { doorTarget } from '../../sandbox/spec.ts'
import { finds, type Attempt } from '../attempt.ts'
import { scant } from '../lab/behind.ts'
import { withoutNetworkThereIs } from '../gvisor/inapplicable.ts'
import type { Probe, Scene } from '../probe.ts'
import { hearsOf } from './asking.ts'
import { longPath } from '../lab/way-out.ts'

const line = '\\r\\n'
const tooMany = 2 * scant.connections

/** Each budget ends one by itself, whichever of the others would have done so later. */
const why = [
  'bytes-up',
  'bytes-down',
  'hello-timeout',
  'idle',
  'too-long',
  'too-many',
  'bad-opening',
] as const

const ofTheDoor = ({ wayOut }: Scene): readonly Attempt[] => {
  const { grant, behind } = wayOut
  const to = ({ host, port }: typeof grant): string => `SP1 connect ${host} ${port}\\n`
  const get = (path: string): string =>
    `${to(grant)}GET ${path} HTTP/1.1${line}Host: ${grant.host}:${grant.port}${line}${line}`
  const proxied = `CONNECT ${grant.host}:${grant.port} HTTP/1.1${line}${line}`
  return [
    finds(
      ['exchange', doorTarget, '0', get('/')],
      (text) => (text.includes(wayOut.greeting) ? null : `no answer: ${text.slice(0, 60)}`),
      'a short request and its answer',
    ),
    finds(
      ['heard', doorTarget, get(`/${'a'.repeat(scant.bytesUp)}`)],
      (text) => (text === '0' ? null : `${text} bytes came back`),
      `a request of more than ${scant.bytesUp} bytes`,
    ),
    finds(
      ['heard', doorTarget, get(longPath)],
      (text) => (Number(text) <= scant.bytesDown ? null : `${text} bytes`),
      `an answer of more than ${scant.bytesDown} bytes`,
    ),
    finds(
      ['outlast', doorTarget, get('/'), 'S', to(behind.secure), to(grant), `${to(grant)}x`],
      (text) => (text === '' ? null : text.trim()),
      'not a line, no hello, no word, a word now and then',
    ),
    finds(
      ['held', doorTarget, `${tooMany}`, `SP1 proxy\\n${proxied}`],
      (text) => (Number(text) > 0 && Number(text) <= scant.connections ? null : `${text} at once`),
      `${tooMany} connections at once`,
    ),
    hearsOf('why they were ended', wayOut, () => why),
  ]
}

export const budgetProbes: readonly Probe[] = [
  {
    id: 'network.budgets',
    number: 137,
    group: 'network',
    protects: 'A granted host is no place for more connections, bytes or time than was said.',
    control: 'budgets',
    isAlone: true,
    within: (lab) => ({ ...lab, openDoor: lab.doors.scant }),
    trial: (scene) =>
      scene.spec.network.mode === 'none'
        ? withoutNetworkThereIs('nobody to speak with', 'nobody is there to speak with')
        : {
            expected: 'an end of each that goes beyond it, at a door with small budgets',
            attempts: ofTheDoor(scene),
            outside: [
              finds(
                ['exchange', '127.0.0.1', `${scene.wayOut.grant.port}`, `GET ${longPath}${line}`],
                (text) => (text.length > scant.bytesDown ? `${text.length} bytes` : null),
                'the server, without a proxy',
              ),
            ],
          },
  },
]
