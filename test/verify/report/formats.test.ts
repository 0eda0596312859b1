// Every format is what its readers expect, whatever a server or a kernel has said.
import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { SaxesParser } from 'saxes'
import { Parser as TapParser } from 'tap-parser'
import { describe, expect, test } from 'vitest'
import type { Verification } from '../../../src/verify/result.ts'
import { formats } from '../../../src/verify/report/formats.ts'
import {
  assertion,
  hostile,
  mixed,
  partly,
  probe,
  reportOf,
  verification,
} from '../../support/verification.ts'

const schemaAt = (path: string): Record<string, unknown> =>
  JSON.parse(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')) as Record<string, unknown>

const problemsOf = (validate: ValidateFunction, value: unknown): unknown =>
  validate(value) ? null : validate.errors

interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  text: string
}

/** Parses strictly; throws where the text is not well-formed. */
const elementsOf = (xml: string): readonly Element[] => {
  const parser = new SaxesParser()
  const elements: Element[] = []
  parser.on('error', (error) => {
    throw error
  })
  parser.on('opentag', ({ name, attributes }) => void elements.push({ name, attributes, text: '' }))
  parser.on('text', (text) => {
    const last = elements.at(-1)
    if (last !== undefined) last.text += text
  })
  parser.write(xml).close()
  return elements
}

describe('text', () => {
  test('is three lines for what holds', () => {
    expect(formats.text(reportOf(verification())).split('\n')).toEqual([
      'ok   offline: 1 probe held, 1 assertion held (bubblewrap, 4.3 s)',
      '     files 1',
      '     limits held by: memory cgroup-v2, pids cgroup-v2, cpu cgroup-v2, files rlimit, tmp tmpfs',
      '',
    ])
  })

  test('counts as held what was held alone, and names what does not apply and what nothing holds', () => {
    const text = formats.text(reportOf(partly()))
    expect(text.split('\n').slice(0, 5)).toEqual([
      'WARN offline: 1 of 2 probes held, 1 assertion held (bubblewrap, 4.3 s)',
      'WARN NOT ENFORCED on this machine: 102 resources.cpu',
      '     do not apply, 2: 123 network.relay-end, process.cgroup',
      '     files 1 · network – · resources 0/1!',
      '     limits held by: memory cgroup-v2, pids cgroup-v2, cpu cgroup-v2, files rlimit, tmp tmpfs',
    ])
    expect(text).toContain('observed: computing: 1.97 of 1 processors')
    expect(formats.text(reportOf(verification(), partly()))).toContain(
      'WARN all 2 hold, but for 1 NOT ENFORCED',
    )
  })

  test('names what does not hold with everything known of it, each in one line', () => {
    const text = formats.text(reportOf(verification(), mixed()))
    expect(text).toContain(
      'Network: Only listed names resolve, and only listed hosts answer.\n    FAIL 2 network.loopback',
    )
    expect(text).toContain('outside: EPERM (NOT open)')
    expect(text).toContain('without seccomp: EPERM (STAYED GREEN)')
    expect(text).toContain('stated at: /repo/profiles/mine.yaml:12')
    expect(text).toContain('ERR  3 failed, 3 could not be tried or prove nothing')
    expect(text).not.toMatch(/\u001b|\u0000|^not ok/m)
  })
})

describe('json', () => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, formats: { 'date-time': true } })
  const validate = ajv.compile(schemaAt('src/schema/verify.schema.json'))

  test('is valid against the schema that ships', () => {
    for (const report of [reportOf(), reportOf(verification()), reportOf(partly(), mixed())]) {
      expect(problemsOf(validate, JSON.parse(formats.json(report)))).toBeNull()
    }
  })

  test('says in escapes what a terminal obeys and JSON leaves as it is, and says the same', () => {
    const server = 'a\u009b2J\u202e\u200b\u{e0041}\u2028'
    const report = formats.json(reportOf(verification({ server })))
    expect(report).not.toMatch(/[\u007f-\u009f\p{Cf}\u2028]/u)
    expect(JSON.parse(report)).toMatchObject({ verifications: [{ server }] })
  })

  test('counts errors apart from failures', () => {
    const { verdict, counts } = JSON.parse(formats.json(reportOf(verification(), mixed()))) as Record<
      string,
      unknown
    >
    const [none] = [{ not_applicable: 0, not_enforced: 0 }]
    expect({ verdict, counts }).toEqual({
      verdict: 'error',
      counts: { pass: 5, fail: 3, error: 3, ...none },
    })
  })

  test('counts nothing as passed that was not', () => {
    const { verdict, counts } = JSON.parse(formats.json(reportOf(partly()))) as Record<string, unknown>
    expect({ verdict, counts }).toEqual({
      verdict: 'not-enforced',
      counts: { pass: 2, fail: 0, error: 0, not_applicable: 2, not_enforced: 1 },
    })
  })
})

describe('junit', () => {
  test('is well-formed, and says the same numbers as its cases', () => {
    const elements = elementsOf(formats.junit(reportOf(verification(), mixed())))
    const named = (name: string): readonly Element[] => elements.filter((element) => element.name === name)
    expect(
      named('testsuite').map(({ attributes: { tests, failures, errors } }) => [tests, failures, errors]),
    ).toEqual([
      ['2', '0', '0'],
      ['9', '3', '3'],
    ])
    expect([named('testcase'), named('failure'), named('error')].map(({ length }) => length)).toEqual([
      11, 3, 3,
    ])
    expect(named('script')).toEqual([])
    expect(named('failure')[0]?.text).toContain('<script>alert("1")</script> & ]]>')
  })
})

test('junit skips, with the reason, what does not apply or is not enforced', () => {
  const elements = elementsOf(formats.junit(reportOf(partly())))
  const said = (name: string): unknown =>
    elements.filter((element) => element.name === name).map(({ attributes }) => attributes)
  expect(said('testsuite')).toMatchObject([{ tests: '5', failures: '0', errors: '0', skipped: '3' }])
  expect(said('skipped')).toEqual([
    { message: 'does not apply: the profile has no network; it applies where it has # one' },
    {
      message: 'not enforced: nothing here holds limits.cpu; observed computing: 1.97 of 1 processors',
    },
    { message: 'does not apply: no group' },
  ])
})

describe('junit, in the dialect of Ant’s task', () => {
  const [report] = [formats.junit(reportOf(partly(), mixed()))]
  const byName = Map.groupBy(elementsOf(report), ({ name }) => name)
  const attributesOf = (name: string): readonly string[] => [
    ...new Set(
      (byName.get(name) ?? []).map(({ attributes }) => Object.keys(attributes).toSorted().join(' ')),
    ),
  ]

  test('has no element and no attribute beyond it', () => {
    expect([...byName.keys()].toSorted()).toEqual(
      'error failure properties property skipped system-err system-out testcase testsuite testsuites'.split(
        ' ',
      ),
    )
    expect(attributesOf('testsuites')).toEqual([''])
    expect(attributesOf('testsuite')).toEqual([
      'errors failures hostname id name package skipped tests time timestamp',
    ])
    expect(attributesOf('testcase')).toEqual(['classname name time'])
    expect([...attributesOf('failure'), ...attributesOf('error')]).toEqual(['message type', 'message type'])
  })

  test('writes times, numbers and names as it wants them', () => {
    for (const { attributes } of byName.get('testsuite') ?? []) {
      expect(attributes['timestamp']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/)
      expect(attributes['hostname']).toMatch(/^\S+$/)
      expect(attributes['time']).toMatch(/^\d+\.\d+$/)
    }
    for (const { attributes } of byName.get('testcase') ?? [])
      expect(attributes['time']).toMatch(/^\d+\.\d+$/)
    for (const { attributes } of [...byName.values()].flat())
      for (const value of Object.values(attributes)) expect(value).toBe(value.replaceAll(/\s+/g, ' ').trim())
  })

  test('has in a suite properties, cases and streams, in this order', () => {
    const order = [...report.matchAll(/^ {4}<(properties|testcase|system-out|system-err)\b/gm)].map(
      ([, name]) => name,
    )
    expect(order.join(' ').replaceAll(/( testcase)+/g, ' testcase')).toBe(
      'properties testcase system-out system-err properties testcase system-out system-err',
    )
  })
})

describe('sarif', () => {
  // Draft 4, of which the schema uses nothing that draft 7 reads otherwise.
  const { $schema: _, id: __, ...schema } = schemaAt('test/fixtures/sarif/sarif-schema-2.1.0.json')
  const validate = new Ajv({ strict: false, validateFormats: false, unicodeRegExp: false }).compile(schema)
  interface Log {
    readonly runs: readonly {
      readonly tool: { readonly driver: { readonly rules: readonly { id: string }[] } }
      readonly results: readonly {
        readonly ruleId: string
        readonly ruleIndex: number
        readonly locations: unknown
      }[]
    }[]
  }
  const logOf = (...all: readonly Verification[]): Log => JSON.parse(formats.sarif(reportOf(...all))) as Log

  test('is valid against the schema of OASIS', () => {
    for (const log of [logOf(), logOf(verification()), logOf(partly(), mixed())]) {
      expect(problemsOf(validate, log)).toBeNull()
    }
    expect(problemsOf(validate, { ...logOf(), version: '2.0.0' })).not.toBeNull()
  })

  test('gives each rule the texts that code scanning asks for', () => {
    const said = logOf(verification(), mixed()).runs[0]?.tool.driver.rules
    expect(said?.length).toBeGreaterThan(3)
    const worded = { text: expect.stringMatching(/\w/) }
    for (const rule of said ?? []) {
      const name = expect.stringMatching(/^([A-Z][a-z0-9]*)+$/)
      const texts = { shortDescription: worded, fullDescription: worded, help: worded }
      expect(rule).toMatchObject({ name, ...texts })
    }
  })

  test('points at the line of the profile that decides, relative to the folder where it lies in it', () => {
    const [run] = logOf(mixed()).runs
    const places = run?.results.map(({ ruleId, locations }) => [ruleId, locations])
    const at = (artifactLocation: object, startLine: number): object[] => [
      { physicalLocation: { artifactLocation, region: { startLine } } },
    ]
    const own = { uri: 'profiles/mine.yaml', uriBaseId: 'SRCROOT' }
    expect(places).toEqual([
      ['network.loopback', at(own, 7)],
      ['syscalls.bpf', at({ uri: 'file:///usr/share/sallyport/profiles/offline.yaml' }, 6)],
      ['process.environment', at({ uri: 'sallyport.yaml', uriBaseId: 'SRCROOT' }, 21)],
      ['server.call', at({ uri: 'sallyport.yaml', uriBaseId: 'SRCROOT' }, 21)],
      ['assertion', at(own, 12)],
      ['assertion', at(own, 12)],
    ])
  })

  test('has a rule for everything tried, each result’s at its index, and no result for what holds', () => {
    const [run] = logOf(verification(), mixed()).runs
    const ids = run?.tool.driver.rules.map(({ id }) => id)
    expect(ids).toEqual([
      'files.shadow',
      'network.loopback',
      'syscalls.bpf',
      'process.capabilities',
      'process.environment',
      'server.call',
      'assertion',
    ])
    for (const { ruleId, ruleIndex } of run?.results ?? []) expect(ids?.[ruleIndex]).toBe(ruleId)
    expect(logOf(verification()).runs[0]?.results).toEqual([])
  })
})

test('sarif has what is not enforced to be reviewed, and tells of what does not apply without a result', () => {
  const { runs } = JSON.parse(formats.sarif(reportOf(partly()))) as {
    runs: { results: object[]; invocations: { toolExecutionNotifications: object[] }[] }[]
  }
  const result = { ruleId: 'resources.cpu', kind: 'review', level: 'none' }
  expect(runs[0]?.results).toEqual([expect.objectContaining(result)])
  const note = (id: string): object => ({ level: 'note', associatedRule: expect.objectContaining({ id }) })
  expect(runs[0]?.invocations[0]?.toolExecutionNotifications).toEqual([
    expect.objectContaining(note('network.relay-end')),
    expect.objectContaining(note('process.cgroup')),
  ])
})

describe('tap', () => {
  const read = (text: string): TapParser => {
    const parser = new TapParser({ strict: true })
    parser.end(text)
    return parser
  }

  test('is a plan that is kept, and ok where everything holds', () => {
    const { results } = read(formats.tap(reportOf(verification(), verification({ profile: 'node' }))))
    expect(results).toMatchObject({ ok: true, count: 2, pass: 2, fail: 0, skip: 0, todo: 0, bailout: false })
  })

  test('skips what does not apply or is not enforced, with the reason', () => {
    const skipped: unknown[] = []
    const parser = new TapParser({ strict: true })
    parser.on('child', (child: TapParser) =>
      child.on('assert', ({ skip }: { skip: unknown }) => skip !== false && skipped.push(skip)),
    )
    parser.end(formats.tap(reportOf(partly())))
    expect(parser.results).toMatchObject({ ok: true, count: 1, pass: 1, fail: 0 })
    expect(skipped).toEqual([
      expect.stringMatching(/^does not apply: the profile has no network; .* one$/),
      expect.stringMatching(/^not enforced: nothing here holds limits.cpu; observed .*1.97/),
      'does not apply: no group',
    ])
  })

  test('no text turns a failure into a skip or adds a point', () => {
    const sub: { count: number; fail: number; skip: number }[] = []
    const parser = new TapParser({ strict: true })
    parser.on('child', (child: TapParser) =>
      child.on('complete', ({ count, fail, skip }: (typeof sub)[number]) => sub.push({ count, fail, skip })),
    )
    parser.end(formats.tap(reportOf(mixed())))
    expect(parser.results).toMatchObject({ ok: false, count: 1, fail: 1, skip: 0, todo: 0 })
    expect(sub).toEqual([{ count: 9, fail: 6, skip: 0 }])
  })
})

describe('html', () => {
  const page = formats.html(reportOf(verification(), mixed()))

  test('loads nothing and runs nothing', () => {
    expect(page).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`)
    expect(page).not.toMatch(/<script|<link|<img|<iframe|\bsrc=|\bhref=|url\(|@import|\bon[a-z]+=/i)
  })

  test('no cell looks held that has nothing but what does not apply, and what is not enforced looks open', () => {
    const shown = formats.html(reportOf(partly()))
    expect(shown).toMatch(/<button class="not-applicable" popovertarget="r0-network"[^>]*><b>∅<\/b> 1</)
    expect(shown).toMatch(/<button class="not-enforced" popovertarget="r0-resources"[^>]*><b>△<\/b> 0\/1</)
    expect(shown).toContain('1 not enforced on this machine; 2 of 3 held; 2 do not apply')
  })

  test('escapes what servers say', () => {
    expect(page).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; ]]&gt;')
    expect(page).not.toContain(hostile)
    expect(page).not.toMatch(/\u001b|\u0000/)
  })

  test('shows a cell in which something failed as failed, whatever else could not be tried in it', () => {
    const [bad] = [mixed()].map((each) => ({ ...each, server: null }))
    const shown = formats.html(reportOf(...(bad === undefined ? [] : [bad])))
    expect(shown).toMatch(/<button class="fail" popovertarget="r0-assertions"/)
    expect(shown).toMatch(/<button class="error" popovertarget="r0-syscalls"/)
    expect(shown).toContain('bubblewrap 0.11.0')
  })

  test('has a cell for each profile and guarantee that opens its evidence', () => {
    const targets = [...page.matchAll(/<td><button class="[\w-]+" popovertarget="([^"]+)"/g)].map(
      ([, id]) => id,
    )
    expect(targets).toEqual([
      'r0-files',
      'r0-assertions',
      'r1-files',
      'r1-network',
      'r1-syscalls',
      'r1-server',
      'r1-assertions',
    ])
    for (const id of targets) expect(page.split(`id="${id}"`)).toHaveLength(2)
  })
})

test('every format says that one failure among passes is not a pass', () => {
  const report = reportOf(
    verification({ probes: [probe(), probe({ id: 'x', verdict: 'fail' })], verdict: 'fail' }),
  )
  expect(formats.text(report)).toMatch(/^FAIL /)
  expect(formats.json(report)).toContain('"verdict": "fail"')
  expect(formats.junit(report)).toContain('failures="1"')
  expect(formats.sarif(report)).toContain('"ruleId": "x"')
  expect(formats.tap(report)).toMatch(/^not ok 1/m)
  expect(formats.html(report)).toContain('class="verdict fail"')
})

test('an assertion alone makes a column and a case', () => {
  const report = reportOf(verification({ probes: [], assertions: [assertion()] }))
  expect(formats.html(report)).toContain('popovertarget="r0-assertions"')
  expect(formats.junit(report)).toContain('tests="1"')
})

test('what an assertion that holds was tried on is told to programs and on the page, not in the few lines for people', () => {
  const shown = '/etc/shadow: EACCES'
  const report = reportOf(verification({ assertions: [assertion({ evidence: [shown] })] }))
  expect(formats.text(report)).not.toContain(shown)
  for (const format of ['json', 'html'] as const) expect(formats[format](report)).toContain(shown)
})
