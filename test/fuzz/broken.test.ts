// So that a fault of a parser would be found: the search itself, from the corpus on, where one of the parser's checks is missing.
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import type { Broken } from './broken-source.ts'
import { patienceMs } from '../support/patience.ts'
import { ran } from './native.ts'
import { targets } from './targets.ts'

const at = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
/** What a search may take, s; at rest each of these is found in the first of them */
const mostS = 5

const broken: Readonly<Record<string, readonly (Broken & { readonly what: string })[]>> = {
  framing: [
    {
      what: 'of a line in pieces the last is kept',
      file: 'rpc/line-buffer.ts',
      check: 'this.#partialBytes = needed',
      instead: 'this.#partialBytes = piece.length',
    },
    {
      what: 'a line may be longer than its limit by a chunk',
      file: 'lib/lines.ts',
      check: 'this.#size + piece.length > this.#limit',
      instead: 'this.#size > this.#limit',
    },
  ],
  canonical: [
    {
      what: 'members are in the order of their text',
      file: 'call/canonical.ts',
      check: 'keys.sort()',
      instead: 'keys.slice()',
    },
    {
      what: 'half of a surrogate pair has a form',
      file: 'call/canonical.ts',
      check: '!value.isWellFormed()',
      instead: 'false',
    },
  ],
  document: [
    {
      what: 'a key may stand twice',
      file: 'config/document.ts',
      check: 'uniqueKeys: true',
      instead: 'uniqueKeys: false',
    },
    {
      what: 'a carriage return is a letter',
      file: 'config/document.ts',
      check: 'bare !== null',
      instead: 'false',
    },
    {
      what: 'a directive of another version is read',
      file: 'config/document.ts',
      check: "version !== '1.2'",
      instead: 'version === undefined',
    },
    { what: 'a tag is read', file: 'config/document.ts', check: 'node.tag !== undefined', instead: 'false' },
    {
      what: 'a merge key is read',
      file: 'config/document.ts',
      check: "key.value === '<<'",
      instead: 'false',
    },
    {
      what: 'a place is a line too far',
      file: 'config/document.ts',
      check: 'return { line, column: col }',
      instead: 'return { line: line + 1, column: col }',
    },
  ],
  config: [
    {
      what: 'a command that is not there is read',
      file: 'config/injection.ts',
      check: '{ command = [] }',
      instead: '{ command }',
    },
    {
      what: 'an allowed command is text',
      file: 'config/layer.ts',
      check: "typeof entry === 'string' ? entry : entry.name",
      instead: 'Object(entry).name.length',
    },
  ],
  profile: [
    {
      what: 'what is wrong with a host is not said',
      file: 'config/profile.ts',
      check: 'unread !== null',
      instead: 'unread === null',
    },
  ],
  http: [
    {
      what: 'what comes in chunks has no body',
      file: 'egress/http-framing.ts',
      check: 'coding !== undefined',
      instead: 'false',
    },
  ],
  intercepted: [
    {
      what: 'the secret may be in any header',
      file: 'egress/intercept/swap-head.ts',
      check: 'if (leaked !== null)',
      instead: 'if (false)',
    },
    {
      what: 'who asks may be said twice',
      file: 'egress/intercept/request-head.ts',
      check: 'if (all(name).length > 1)',
      instead: 'if (false)',
    },
    {
      what: 'a placeholder may stand in a path',
      file: 'egress/intercept/swap-head.ts',
      check: "replaceAll(before, placeholders, (it) => exchange(it, { in: 'elsewhere' }))",
    },
  ],
  answered: [
    {
      what: 'a header is passed on as it is',
      file: 'egress/intercept/answer.ts',
      check: '(isClean ? text : masked(text, redactor))',
      instead: 'text',
    },
    {
      what: 'a body is passed on as it is',
      file: 'egress/intercept/pour.ts',
      check: 'return write(mask.push(piece))',
      instead: 'return write(piece)',
    },
    {
      what: 'trailers are passed on as they are',
      file: 'egress/intercept/answer.ts',
      check: '[masked(name, redactor), masked(value, redactor)]',
      instead: '[name, value]',
    },
  ],
  frames: [
    {
      what: 'a message is passed on as it is',
      file: 'egress/intercept/frames.ts',
      check: '[said.push(part), ',
      instead: '[part, ',
    },
    {
      what: 'a client’s message is not looked at',
      file: 'egress/intercept/frames.ts',
      check: 'if (found !== null)',
      instead: 'if (false)',
    },
    {
      what: 'a mask begins anew with each chunk',
      file: 'egress/intercept/frames.ts',
      check: 'mask[(done + at) & 3]',
      instead: 'mask[at & 3]',
    },
  ],
  hello: [
    {
      what: 'a name is taken as it is written',
      file: 'egress/client-hello.ts',
      check: 'canonicalHost(text)',
      instead: 'text',
    },
    {
      what: 'a length is not held to its list',
      file: 'egress/client-hello.ts',
      check: 'if (from + length > this.#bytes.length) throw noHello()',
    },
  ],
  opening: [{ what: 'a number may be a name', file: 'lib/host-name.ts', check: ' || numeric.test(last)' }],
  notices: [
    {
      what: 'a name is told as it is',
      file: 'egress/notices.ts',
      check: 'it.length === 4 ? it : escaped(it)',
      instead: 'it',
    },
    {
      what: 'a name has any length',
      file: 'egress/notices.ts',
      check: 'escaped(it))).slice(0, 253)',
      instead: 'escaped(it)))',
    },
    {
      what: 'a port may be any number',
      file: 'egress/authority.ts',
      check: 'port <= 65_535 ? port : null',
      instead: 'port',
    },
    { what: 'an address has a zone', file: 'egress/notices.ts', check: " && !what.includes('%')" },
    { what: 'a word behind the last is left out', file: 'egress/notices.ts', check: 'rest.length > 0 || ' },
    {
      what: 'a count is not read',
      file: 'egress/notices.ts',
      check: 'null, Number(what))',
      instead: 'null)',
    },
  ],
  reports: [
    {
      what: 'a report is not held to its frame',
      file: 'sandbox/control/control.ts',
      check: 'expectBytes(type, payload, 32)',
      instead: '',
    },
    {
      what: 'a frame is forgotten where its chunk ends',
      file: 'sandbox/control/control.ts',
      check: 'this.#held = Buffer.from(rest)',
      instead: '',
    },
  ],
}

test('every parser has a fault of which it is known to be found', () => {
  expect(Object.keys(broken).toSorted()).toEqual(targets.map(({ name }) => name).toSorted())
})

describe.concurrent.each(Object.entries(broken))('the search of %s', (name, faults) => {
  test.each(faults)('finds it if $what', async (fault) => {
    const own = [
      '--import',
      new URL('broken-source.ts', import.meta.url).href,
      at('fuzz.ts'),
      '--inside',
      name,
    ]
    const how = ['--seconds', `${mostS}`, '--seed', 'broken']
    const told = `SALLYPORT_FUZZ_BROKEN=${JSON.stringify(fault)}`
    const { code, stdout, stderr } = await ran('env', [told, process.execPath, ...own, ...how], patienceMs)
    expect(stdout, stderr).toMatch(/^\d+ runs, \d+ blocks/)
    expect(code, stdout).toBe(1)
  })
})
