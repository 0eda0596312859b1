// What a server in a sandbox says to its name server, to the proxy beside it, and at the door itself.
import { holds, seen, stops, stopsOrFinds, type Attempt, type Watched } from '../attempt.ts'
import { proxyPort } from '../../lib/own-variables.ts'
import { doorTarget } from '../../sandbox/spec.ts'
import { isOfTime } from '../lab/behind.ts'
import type { WayOut } from '../lab/way-out.ts'

export const resolver = '127.0.0.53'
export const types = { A: 1, TXT: 16, AXFR: 252 } as const
export const nobodyThere = ['ECONNREFUSED', 'ENETUNREACH'] as const
const noAnswer = ['ECONNRESET', 'EPIPE', ...nobodyThere] as const

export const ask = (name: string, type: number, by: readonly string[]): Attempt =>
  stops(['dns', resolver, '53', name, `${type}`], by, `name ${name.slice(0, 60)}, type ${type}`)

/** Behind it nobody says anything, and nothing more is to be waited for. */
export const established = ' 200 '

/** What the proxy must refuse, and say so: what it lets through comes to an answer, or to nothing behind it. */
export const connects = (host: string, port: number): Attempt => {
  const attempt = stopsOrFinds(
    [
      'exchange',
      '127.0.0.1',
      `${proxyPort}`,
      `CONNECT ${host}:${port} HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\n\\r\\n`,
      established,
    ],
    [],
    (text) => (/^HTTP\/1\.[01] 2/.test(text) ? 'connected' : letThrough(text)),
    `CONNECT ${host}:${port}`,
  )
  return {
    ...attempt,
    meaning(answer) {
      const word = wordOf(answer.text)
      const isUntried = answer.outcome === 'open' && isOfTime(word)
      return isUntried
        ? { is: 'broken', observed: `not tried: ${word}`, errno: null }
        : attempt.meaning(answer)
    },
  }
}

/** The word with which the proxy refuses, or says what became of it; null where it says none. */
const wordOf = (text: string): string | null => /\(sallyport: (\S+)\)/.exec(text)?.[1] ?? null

const letThrough = (text: string): string | null =>
  /^HTTP\/1\.[01] 4\d\d /.test(text) && wordOf(text) !== null
    ? null
    : `let through, or not ours: ${wordOf(text) ?? text.slice(0, 40)}`

/** What the relay says at the door, said by the server itself. */
export const atDoor = (host: string, port: number): readonly string[] => [
  'exchange',
  doorTarget,
  '0',
  `SP1 connect ${host} ${port}\\nGET / HTTP/1.1\\r\\nHost: ${host}:${port}\\r\\nConnection: close\\r\\n\\r\\n`,
]

export const says = (host: string, port: number, greeting: string): Attempt =>
  stopsOrFinds(
    atDoor(host, port),
    noAnswer,
    (text) => (text.includes(greeting) || /HTTP\/1\.1 200/.test(text) ? 'connected' : null),
    `at the door: ${host}:${port}`,
  )

/** What somebody is told who asks a proxy or at a door that are not there; whoever answers at all is one too many. */
export const toNobody = ({ asks, label }: Attempt): Attempt => stops(asks, [...nobodyThere, 'ENOENT'], label)

/** The path of the door behind which the program is; nothing where it has none. */
export const doorOf = ({ launched }: Pick<Watched, 'launched'>): string => {
  const network = launched?.plan.spec.network
  return network?.mode === 'allowlist' ? network.door.source : ''
}

/** Looks at what the program's own door has heard: all of these words, in time. */
export const hearsOf = (
  label: string,
  { heardAt }: Pick<WayOut, 'heardAt'>,
  wordsOf: (program: Watched) => readonly string[] | Promise<readonly string[]>,
): Attempt =>
  seen(
    label,
    async (program) => {
      const words = await wordsOf(program)
      const { reasons } = heardAt(doorOf(program))
      const missing = (): readonly string[] => words.filter((word) => !reasons.includes(word))
      await holds(
        () => missing().length === 0,
        program,
        () => `nothing of ${missing().join(', ')}`,
      )
      return ''
    },
    () => null,
  )
