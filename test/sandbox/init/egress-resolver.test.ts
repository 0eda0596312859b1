// The sandbox's resolver from the server's side: the list, all of it and nothing else, whatever is asked and however.
import type { Socket } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { hostileHosts } from '../../support/hostile-hosts.ts'
import { edns, query, read, types, wireName } from '../../support/dns.ts'
import { egressPlan } from '../../support/egress.ts'
import { start, textOf } from '../../support/plan.ts'
import { openTestDoor } from '../../support/sandbox-door.ts'
import { buildInit } from '../../support/init-sandbox.ts'

beforeAll(() => void buildInit())

const names = [
  'api.example.test:443',
  'a_b.example.test:443',
  '*.wild.example.test:443',
  '*.wild.example.test:80',
]

const ask = async (
  how: 'udp' | 'tcp' | 'pipelined',
  queries: readonly Buffer[],
  granted: readonly string[] = names,
): Promise<{ answers: readonly (string | null)[]; notices: readonly string[] }> => {
  await using door = await openTestDoor()
  await using server = await start(await egressPlan(door, granted, 'ask-resolver.mjs', [how, '-']))
  const stdin = server.stdin as unknown as NodeJS.WritableStream
  stdin.end(JSON.stringify(queries.map((bytes) => bytes.toString('hex'))))
  const [stdout, stderr] = await Promise.all([textOf(server.stdout), textOf(server.stderr)])
  expect(stderr).toBe('')
  return { answers: JSON.parse(stdout) as (string | null)[], notices: [...door.notices] }
}

const ttlMs = 5000
const { A, AAAA, HTTPS, SVCB, MX, TXT, ANY, PTR, NS, SOA, AXFR } = types
const api = '198.18.0.1'
const label63 = 'x'.repeat(63)
const longest = wireName(label63, label63, label63, 'x'.repeat(61))

/** What is asked, and what is answered. */
const cases: Readonly<Record<string, readonly [Buffer, string | RegExp]>> = {
  'a listed name': [query('api.example.test', A), `NOERROR ${api}`],
  'another listed name': [query('a_b.example.test', A), 'NOERROR 198.18.0.2'],
  'AAAA of a listed name': [query('api.example.test', AAAA), 'NOERROR SOA'],
  'HTTPS of a listed name': [query('api.example.test', HTTPS), 'NOERROR SOA'],
  'SVCB of a listed name': [query('api.example.test', SVCB), 'NOERROR SOA'],
  'MX of a listed name': [query('api.example.test', MX), 'NOERROR SOA'],
  'TXT of a listed name': [query('api.example.test', TXT), 'NOERROR SOA'],
  'NS of a listed name': [query('api.example.test', NS), 'NOERROR SOA'],
  'SOA of a listed name': [query('api.example.test', SOA), 'NOERROR SOA'],
  'ANY of a listed name': [query('api.example.test', ANY), `NOERROR ${api}`],
  'a transfer of a listed name': [query('api.example.test', AXFR), 'REFUSED'],
  'another class': [query('api.example.test', A, { class: 3 }), 'REFUSED'],
  'mixed case': [query('aPi.eXAMple.TEST', A), `NOERROR ${api}`],
  'a dot at the end, which the wire does not have': [query('api.example.test.', A), `NOERROR ${api}`],
  EDNS: [query('api.example.test', A, { counts: [1, 0, 0, 1], rest: edns() }), `NOERROR EDNS ${api}`],
  'EDNS for a name that is not listed': [
    query('evil.example.test', A, { counts: [1, 0, 0, 1], rest: edns() }),
    'NXDOMAIN EDNS SOA',
  ],
  'EDNS with a payload of 100 bytes': [
    query('api.example.test', A, { counts: [1, 0, 0, 1], rest: edns(0, 100) }),
    `NOERROR EDNS ${api}`,
  ],
  'EDNS of a later version': [
    query('api.example.test', A, { counts: [1, 0, 0, 1], rest: edns(1) }),
    '16 EDNS',
  ],
  'EDNS twice': [
    query('api.example.test', A, { counts: [1, 0, 0, 2], rest: Buffer.concat([edns(), edns()]) }),
    'FORMERR',
  ],
  'an additional record that is announced and not there': [
    query('api.example.test', A, { counts: [1, 0, 0, 1] }),
    'FORMERR',
  ],
  'a name of a wildcard': [query('one.wild.example.test', A), 'NOERROR 198.19.0.1'],
  'a name of two labels of a wildcard': [query('a.b.wild.example.test', A), 'NOERROR 198.19.0.2'],
  'another type of a name of a wildcard': [query('two.wild.example.test', AAAA), 'NOERROR SOA'],
  'a third name, since only an address takes one': [
    query('three.wild.example.test', A),
    'NOERROR 198.19.0.3',
  ],
  'the first name again': [query('ONE.wild.example.test', A), 'NOERROR 198.19.0.1'],
  'the wildcard’s own suffix': [query('wild.example.test', A), 'NXDOMAIN SOA'],
  'a name that ends like the wildcard without a dot': [query('notwild.example.test', A), 'NXDOMAIN SOA'],
  'another name': [query('evil.example.test', A), 'NXDOMAIN SOA'],
  'a listed name with a suffix': [query('api.example.test.evil.test', A), 'NXDOMAIN SOA'],
  'a listed name with a search domain': [query('api.example.test.corp.internal', A), 'NXDOMAIN SOA'],
  'a listed name with a prefix': [query('x.api.example.test', A), 'NXDOMAIN SOA'],
  'one label': [query('api', A), 'NXDOMAIN SOA'],
  'the root': [query('', A), 'NXDOMAIN SOA'],
  'PTR of an address of the sandbox': [query('1.0.18.198.in-addr.arpa', PTR), 'NXDOMAIN SOA'],
  'PTR of another': [query('8.8.8.8.in-addr.arpa', PTR), 'NXDOMAIN SOA'],
  'a dot inside a label': [query(wireName('api.example', 'test'), A), 'NXDOMAIN SOA'],
  'a dot inside a label of a wildcard': [
    query(wireName('a.b', 'wild', 'example', 'test'), A),
    'NXDOMAIN SOA',
  ],
  'a NUL behind a listed name': [query(wireName('api', 'example', 'test\0'), A), 'NXDOMAIN SOA'],
  'a NUL in a name of a wildcard': [query(wireName('a\0b', 'wild', 'example', 'test'), A), 'NXDOMAIN SOA'],
  'high bytes': [query(wireName('\xff\xfe', 'wild', 'example', 'test'), A), 'NXDOMAIN SOA'],
  'a name of 255 bytes': [query(longest, A), 'NXDOMAIN SOA'],
  'a name of 256 bytes': [query(wireName(label63, label63, label63, 'x'.repeat(62)), A), 'FORMERR'],
  'a label of 64 bytes': [query(wireName('x'.repeat(64), 'test'), A), 'FORMERR'],
  'a pointer to itself': [query(Buffer.of(0xc0, 12), A), 'FORMERR'],
  'a pointer behind a label': [query(Buffer.of(3, 0x61, 0x70, 0x69, 0xc0, 12), A), 'FORMERR'],
  'a pointer forwards': [query(Buffer.of(0xc0, 0xff), A), 'FORMERR'],
  'two questions': [
    query('api.example.test', A, { counts: [2, 0, 0, 0], rest: query('api.example.test', A).subarray(12) }),
    'FORMERR',
  ],
  'no question': [query('', A, { counts: [0, 0, 0, 0] }), 'FORMERR'],
  'another opcode': [query('api.example.test', A, { flags: 0x2800 }), 'NOTIMP'],
  'an answer': [query('api.example.test', A, { flags: 0x8180 }), 'silence'],
  'a cut name': [query('api.example.test', A).subarray(0, 20), 'FORMERR'],
  'a cut type': [query('api.example.test', A).subarray(0, -3), 'FORMERR'],
  'a head alone': [query('', A).subarray(0, 12), 'FORMERR'],
  'half a head': [query('', A).subarray(0, 7), 'silence'],
  'a byte more': [query('api.example.test', A, { rest: Buffer.of(0) }), `NOERROR ${api}`],
}
const all = Object.entries(cases)

describe.each(['udp', 'tcp'] as const)('over %s', (how) => {
  test('everything that is asked gets the answer that it should, with its question as it was', async () => {
    const { answers, notices } = await ask(
      how,
      all.map(([, [asked]]) => asked),
    )
    const got = Object.fromEntries(all.map(([title], index) => [title, read(answers[index] ?? null)]))
    expect(got).toEqual(Object.fromEntries(all.map(([title, [, answer]]) => [title, answer])))
    const echoed = Buffer.from(answers[all.findIndex(([title]) => title === 'mixed case')] ?? '', 'hex')
    expect(echoed.subarray(0, 2)).toEqual(Buffer.of(0x12, 0x34))
    expect(echoed.includes(wireName('aPi', 'eXAMple', 'TEST'))).toBe(true)
    // Refusals are told, with what is no letter escaped, and a dot in a label too.
    expect(notices).toEqual(
      expect.arrayContaining([
        'name evil.example.test 1',
        'name api\\x2eexample.test 1',
        'name api.example.test\\x00 1',
        'name \\xff\\xfe.wild.example.test 1',
        'name . 1',
        'name 8.8.8.8.in-addr.arpa 12',
        'name api.example.test 252',
      ]),
    )
    expect(notices.filter((line) => !/^name [\w.\\-]{1,253} \d+$/.test(line))).toEqual([])
  })
})

/** What a hostile spelling can be on the wire: its labels where it has some, and all of it as one label. */
const wireForms = (text: string): readonly Buffer[] => {
  const labels = text
    .replace(/\.$/, '')
    .split('.')
    .map((label) => Buffer.from(label))
  const isName = (all: readonly Buffer[]): boolean =>
    all.every(({ length }) => length > 0 && length < 64) &&
    all.reduce((sum, { length }) => sum + length + 1, 1) < 256
  return [labels, [Buffer.from(text)]].filter(isName).map((all) => wireName(...all))
}

/** Letters, digits and hyphens only, under the wildcard: names for DNS, and for the door outside none. */
const judgedOutside = ['xn--a.allowed.com', 'xn--.allowed.com', '-x.allowed.com', 'x-.allowed.com']

describe.each(['udp', 'tcp'] as const)('the hostile spellings over %s', (how) => {
  test('lead nowhere, but for what the list means, and are told', async () => {
    const rows = hostileHosts.flatMap((row) => wireForms(row.text).map((wire) => ({ ...row, wire })))
    const granted = ['allowed.com:443', '*.allowed.com:443']
    const { answers, notices } = await ask(
      how,
      rows.map(({ wire }) => query(wire, A)),
      granted,
    )
    const wanted = ({ text, outcome, wire }: (typeof rows)[number]): string | RegExp => {
      if (outcome === 'listed' && wire.equals(wireName('ALLOWED', 'com'))) return 'NOERROR 198.18.0.1'
      const isJudgedOutside = judgedOutside.includes(text) && wire.equals(wireName(...text.split('.')))
      return isJudgedOutside ? expect.stringMatching(/^NOERROR 198\.19\.0\.[1-4]$/) : 'NXDOMAIN SOA'
    }
    expect(rows.map(({ text }, index) => [text, read(answers[index] ?? null)])).toEqual(
      rows.map((row) => [row.text, wanted(row)]),
    )
    expect(new Set(rows.map(({ group }) => group)).size).toBe(35)
    expect(notices).toContain('name 127.0.0.1 1')
    expect(notices).toContain('name 127\\x2e0\\x2e0\\x2e1 1')
  })
})

test('queries that come together on one connection are all answered', async () => {
  const asked = Array.from({ length: 50 }, (_, id) => query('api.example.test', A, { id }))
  const { answers } = await ask('pipelined', asked)
  expect(answers.map(read)).toEqual(asked.map(() => `NOERROR ${api}`))
  expect(answers.map((hex) => Number.parseInt((hex ?? '').slice(0, 4), 16))).toEqual(asked.map((_, id) => id))
})

test.each(['udp', 'tcp'] as const)('after 64 KB of garbage over %s it answers as before', async (how) => {
  const garbage = Buffer.alloc(how === 'udp' ? 65_000 : 65_535, 'garbage \xc0\x0c\x00')
  const { answers } = await ask(how, [garbage, query('api.example.test', A)])
  expect(read(answers[0] ?? null)).toMatch(how === 'udp' ? /^(FORMERR|NOTIMP|silence)$/ : /^silence$/)
  expect(read(answers[1] ?? null)).toBe(`NOERROR ${api}`)
})

test('names of a wildcard have 256 addresses, one each; for the next there is none, and that is told', async () => {
  const asked = Array.from({ length: 257 }, (_, index) => query(`n${index}.wild.example.test`, A))
  const { answers, notices } = await ask('pipelined', [...asked, query('api.example.test', A)])
  const addresses = answers.map(read)
  expect(addresses.filter((line) => /^NOERROR 198\.19\.[01]\.\d+$/.test(line))).toHaveLength(256)
  expect(new Set(addresses.slice(0, 256)).size).toBe(256)
  expect(addresses.slice(256)).toEqual(['SERVFAIL', `NOERROR ${api}`])
  expect(notices).toEqual(['pool n256.wild.example.test 1'])
})

test('an address is another name’s only once the answer that told of it has run out and no connection goes through it', async () => {
  interface Told {
    readonly address: string
    readonly askedMs: number
    readonly answeredMs: number
  }
  const open = new Set<Socket>()
  await using door = await openTestDoor(({ socket }) => void open.add(socket.resume()))
  await using server = await start(await egressPlan(door, names, 'fill-pool.mjs'))
  const [stdout, stderr] = await Promise.all([textOf(server.stdout), textOf(server.stderr)])
  expect(stderr).toBe('')
  const { first, late, known, next, rest, freed } = JSON.parse(stdout) as {
    readonly [one in 'known' | 'next' | 'freed']: Told
  } & { readonly first: readonly Told[]; readonly late: object; readonly rest: readonly Partial<Told>[] }
  expect(new Set(first.map(({ address }) => address)).size).toBe(256)
  expect(late).toEqual({ name: 'late', code: 'ESERVFAIL' })
  expect(known.address).toBe(first[7]?.address)
  // From before it was asked to after it was answered: a lower bound, however slow this machine is.
  const before = new Map(first.map(({ address, askedMs }) => [address, askedMs]))
  before.set(known.address, known.askedMs)
  const given = [next, ...rest].filter((it): it is Told => it.address !== undefined)
  for (const { address, answeredMs } of given)
    expect(answeredMs - (before.get(address) ?? Infinity), address).toBeGreaterThan(ttlMs)
  expect(new Set(given.map(({ address }) => address)).size).toBe(given.length)
  expect(given.map(({ address }) => address)).not.toContain(first[0]?.address)
  expect(freed.answeredMs - (first[0]?.askedMs ?? Infinity)).toBeGreaterThan(ttlMs)
  await door.noticed(/^pool late\.wild\.example\.test 1$/)
})

test('10,000 names that are not listed do not exist, and are told at the rate of the contract', async () => {
  const asked = Array.from({ length: 10_000 }, (_, index) => query(`n${index}.evil.example.test`, A))
  const { answers, notices } = await ask('pipelined', asked)
  expect(new Set(answers.map(read))).toEqual(new Set(['NXDOMAIN SOA']))
  expect(notices.length).toBeLessThan(1000)
  expect(notices.some((line) => line.startsWith('name n0.evil'))).toBe(true)
})
