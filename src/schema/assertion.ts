// What people state of a sandbox in one line each: `cannot read /etc/shadow`, `must ask write_*`. Parsed here, tried in verify/.
import { canonicalHost } from '../lib/host-name.ts'
import { nearest } from '../lib/nearest.ts'

export type LimitName = 'memory' | 'pids' | 'files' | 'disk'

/** One thing that a server can or cannot do. Paths are globs as in rules; so are names of variables and tools. */
export type Assertion =
  | { readonly about: 'read' | 'write' | 'exec'; readonly isAllowed: boolean; readonly path: string }
  | { readonly about: 'connect'; readonly isAllowed: boolean; readonly host: string; readonly port: number }
  | { readonly about: 'resolve'; readonly isAllowed: boolean; readonly host: string }
  | { readonly about: 'env'; readonly name: string }
  | { readonly about: 'exceed'; readonly limit: LimitName }
  | { readonly about: 'call' | 'ask'; readonly tool: string }

/** An assertion as a file states it. */
export interface StatedAssertion {
  readonly assertion: Assertion
  readonly text: string
  readonly reason: string
  readonly file: string
  readonly line: number
}

/** What is wrong with a line: what stands there, what could, and what was meant where that can be told. */
export interface AssertionProblem {
  readonly got: string
  readonly expected: string
  readonly mend: string | null
}

export type ParsedAssertion =
  | { readonly ok: true; readonly assertion: Assertion }
  | { readonly ok: false; readonly problem: AssertionProblem }

/** Every form, as messages and docs have them. */
export const assertionForms = [
  'cannot read PATH',
  'cannot write PATH',
  'cannot exec PATH',
  'cannot connect HOST:PORT',
  'cannot resolve NAME',
  'cannot see env NAME',
  'cannot exceed memory|pids|files|disk',
  'cannot call TOOL',
  'must ask TOOL',
  'can read PATH',
  'can write PATH',
  'can exec PATH',
  'can connect HOST:PORT',
  'can resolve NAME',
] as const

const limits: readonly LimitName[] = ['memory', 'pids', 'files', 'disk']
const absolutePath = /^(\/(?!\.{1,2}(\/|$))[^/\u0000-\u001f\u007f]+)+$/
const address = /^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-fA-F:.]+\])$/

/** Parses one line; words are parted by single spaces, and the last of them may hold spaces where it is a path. */
export function parseAssertion(text: string): ParsedAssertion {
  const [modal = '', verb = '', ...words] = text.split(' ')
  const rest = words.join(' ')
  const verbs = verbsOf(modal)
  if (verbs.length === 0) return unknown('a line that begins', text, modal, ['cannot', 'can', 'must'])
  if (!verbs.includes(verb)) return unknown(`\`${modal}\` with`, text, verb, verbs)
  switch (verb) {
    case 'read':
    case 'write':
    case 'exec':
      return absolutePath.test(rest)
        ? found({ about: verb, isAllowed: modal === 'can', path: rest })
        : refused(rest, `${modal} ${verb} and an absolute path or glob without \`..\` and a slash at its end`)
    case 'connect':
      return parseConnect(rest, modal === 'can')
    case 'resolve': {
      const host = canonicalHost(rest)
      return host === null
        ? refused(rest, `${modal} resolve and a host name`)
        : found({ about: verb, isAllowed: modal === 'can', host })
    }
    case 'see':
      return parseEnv(rest)
    case 'exceed': {
      const limit = limits.find((each) => each === rest)
      return limit === undefined
        ? unknown('`cannot exceed` with', text, rest, limits)
        : found({ about: verb, limit })
    }
    default:
      return /^[A-Za-z0-9_.*?-]{1,128}$/.test(rest)
        ? found({ about: verb === 'ask' ? 'ask' : 'call', tool: rest })
        : refused(rest, `${modal} ${verb} and a tool’s name or glob`)
  }
}

function verbsOf(modal: string): readonly string[] {
  const forms = assertionForms.map((form) => form.split(' '))
  return [...new Set(forms.filter(([first]) => first === modal).map(([, verb]) => verb ?? ''))]
}

function parseConnect(rest: string, isAllowed: boolean): ParsedAssertion {
  const [, name = '', digits = ''] = /^(.+):([0-9]{1,5})$/.exec(rest) ?? []
  const port = Number(digits)
  const host = address.test(name) ? name.replace(/^\[(.*)\]$/, '$1') : canonicalHost(name)
  if (host === null || port < 1 || port > 65535)
    return refused(rest, 'connect and HOST:PORT, a host name or an address ([…] around IPv6) and a port')
  return found({ about: 'connect', isAllowed, host, port })
}

function parseEnv(rest: string): ParsedAssertion {
  const [, name] = /^env ([A-Za-z0-9_*?]{1,256})$/.exec(rest) ?? []
  return name === undefined
    ? refused(rest, 'cannot see env and a variable’s name or glob')
    : found({ about: 'env', name })
}

const found = (assertion: Assertion): ParsedAssertion => ({ ok: true, assertion })

const refused = (got: string, expected: string): ParsedAssertion => ({
  ok: false,
  problem: { got: got === '' ? 'nothing' : JSON.stringify(got), expected, mend: null },
})

function unknown(what: string, text: string, word: string, words: readonly string[]): ParsedAssertion {
  const meant = nearest(word, words)
  return {
    ok: false,
    problem: {
      got: text === '' ? 'nothing' : JSON.stringify(text),
      expected: `${what} one of ${words.join(', ')}`,
      mend: meant === null ? null : `did you mean ${meant}?`,
    },
  }
}
