// Scale on one machine, small: the whole run with few servers, what it says of a daemon that leaks, and how growth is judged.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { longestMs, wholeMs } from '../support/patience.ts'
import { tempDir } from '../support/temp-dir.ts'
import { plot } from './curves.ts'
import { judge, type Verdict } from './judge.ts'
import { inWords } from './page.ts'
import type { Outcome, Step } from './run.ts'

const script = fileURLToPath(new URL('scale.ts', import.meta.url))
const leaks = fileURLToPath(new URL('../fixtures/leaks.mjs', import.meta.url))

interface Found {
  readonly status: number
  readonly said: string
  readonly outcome: Outcome & { readonly verdicts: readonly Verdict[] }
  readonly html: string
}

async function scale(...args: readonly string[]): Promise<Found> {
  await using folder = await tempDir()
  const [json, html] = [join(folder.path, 'json'), join(folder.path, 'html')]
  const { status, said } = await new Promise<{ status: number; said: string }>((resolve) => {
    const all = [script, ...args, '--json', json, '--html', html]
    execFile(process.execPath, all, { timeout: wholeMs }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : Number(error.code ?? Infinity), said: stdout + stderr }),
    )
  })
  expect(status, said).toBeLessThan(3)
  expect(said, 'what a run ends with').toMatch(/^(held|BROKEN|not measured) /m) // one that failed as a program ends with 1, too
  return { status, said, outcome: JSON.parse(readFileSync(json, 'utf8')), html: readFileSync(html, 'utf8') }
}

test.concurrent.for([
  [['--sevrers', '10'], '--sevrers'],
  [['--servers', 'many'], '--servers many: use a whole number above 0'],
  [['--servers', '251'], 'use at most 250'],
  [['--servers', '-3'], "Option '--servers' argument is ambiguous"],
  [['--seconds', '1e99'], '--seconds 1e+99: use at most 604800, which is a week'],
  [['--rate', 'Infinity'], '--rate Infinity: use a number above 0'],
  [['--rate', '200'], '--rate 200: of 100 hosts together that is 20000 calls a second; use at most 100'],
  [['--seconds', '604800'], '--seconds 604800: at 500 calls a second that is 302400000; use at most 20000'],
  [['--html', '/nowhere/at/all'], '/nowhere/at/all cannot be written'],
  [['--servers', '1', '--hosts', '2'], 'use at most as many hosts as servers, 1'],
] as const)('%j is refused by what is taken', async ([args, said], { expect }) => {
  const run = promisify(execFile)(process.execPath, [script, ...args], { timeout: wholeMs })
  await expect(run).rejects.toMatchObject({
    code: 7,
    stdout: '',
    stderr: expect.stringMatching(/^scale: .*\n$/),
  })
  await expect(run).rejects.toMatchObject({ stderr: expect.stringContaining(said) })
})

test.concurrent('--help explains each option, and measures nothing', async ({ expect }) => {
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--help'])
  expect(stdout).toMatch(/^npm run scale -- \[--servers N\]/)
  for (const option of ['servers', 'hosts', 'seconds', 'rate', 'json', 'html', 'load'])
    expect(stdout).toMatch(new RegExp(`^  --${option} .* {2,}\\S`, 'm'))
  expect(stdout).toContain('Status 0: ')
})

test.concurrent(
  'ten servers and five hosts: every call is answered, nothing grows, and the page shows it',
  async () => {
    const { status, said, outcome, html } = await scale('--servers', '10', '--hosts', '5', '--seconds', '3')
    expect(status, said).toBe(0)
    expect(outcome.steps.map(({ servers, hosts }) => [servers, hosts])).toEqual([
      [1, 1],
      [10, 5],
    ])
    expect(outcome.standing.map(({ servers }) => servers)).toEqual([10, 10, 10, 10, 10, 10])
    expect(outcome.steady.calls).toBeGreaterThan(0)
    expect(outcome.steady.errors).toBe(0)
    const counted = outcome.calls.reduce((sum, { calls }) => sum + calls, 0)
    expect(counted).toBe(outcome.steady.calls)
    expect(html.match(/<svg /g)).toHaveLength(10)
    expect(html).not.toMatch(/NaN|undefined|Infinity/)
    expect(html).not.toContain('how many')
    expect(html).toMatch(/<title>descriptors of the daemon: \d+ at the end</)
  },
  longestMs,
)

test.concurrent(
  'a run too short for a call says that nothing of calls was measured, and holds nothing by that',
  async () => {
    const rare = ['--servers', '1', '--hosts', '1', '--seconds', '1', '--rate', '0.0001']
    const { status, said, outcome, html } = await scale(...rare)
    expect(outcome.steady.calls).toBe(0)
    expect(said).toContain('0 calls, latency not measured')
    expect(said).toMatch(/^not measured +calls without their answer, at most 0$/m)
    expect(said).not.toMatch(/^held +(calls|what lives)/m)
    expect(said + html).not.toMatch(/NaN|undefined|Infinity/)
    expect(status, said).toBe(2)
  },
  longestMs,
)

test.concurrent(
  'a daemon that leaks is found out, by descriptors and by memory',
  async () => {
    const small = ['--servers', '1', '--hosts', '1', '--seconds', '3', '--rate', '10', '--load', leaks]
    const { status, said } = await scale(...small)
    expect(status, said).toBe(1)
    expect(said).toMatch(/BROKEN +what lives in the daemon/)
    expect(said).toMatch(/BROKEN +descriptors of the daemon/)
    expect(said).toMatch(/held +calls without their answer/)
  },
  longestMs,
)

const standing = {
  at: 0,
  processes: 2,
  servers: 200,
  pssMib: 1,
  livingMib: 30,
  rssMib: 100,
  descriptors: 100,
}
const latency = { calls: 10, errors: 0, p50: 1, p95: 1, p99: 1, max: 1, hostsLate: 0 }
const step = (servers: number, descriptors: number): Step => ({
  servers,
  hosts: servers,
  launchMs: 50,
  restCpu: 0,
  callUs: 100,
  latency,
  standing: { ...standing, servers, descriptors },
})
const judged = (steps: readonly Step[], more: Partial<Outcome> = {}): readonly string[] =>
  judge({
    wanted: { servers: 200, hosts: 100, seconds: 60, rate: 5, load: null },
    steps,
    seconds: [],
    calls: [],
    beside: [],
    standing: [0, 10, 20].map((at) => ({ ...standing, at })),
    steady: latency,
    ...more,
  })
    .filter(({ outcome }) => outcome === 'broken')
    .map(({ what }) => what)
const counts = [1, 10, 50, 100, 200]

test('what grows by the server is held, what grows by its square is not', () => {
  expect(judged(counts.map((n) => step(n, 30 + 7 * n)))).toEqual([])
  expect(judged(counts.map((n) => step(n, 30 + n * n)))).toEqual([
    'descriptors for each further server, the last 100',
  ])
})

test('the page says in words what a further server takes', () => {
  const words = inWords(counts.map((n) => step(n, 30 + 7 * n)))
  expect(words).toContain(
    'From 1 to 200, a further server took 0 KiB that live in the daemon and 7 of its descriptors',
  )
  expect(words).toContain('A call took 1 ms with 1 and 1 with 200 at the median')
})

test('a call that failed and a server that went away are no success', () => {
  const steps = counts.map((n) => step(n, 30 + 7 * n))
  expect(judged(steps, { steady: { ...latency, errors: 1 } })).toEqual(['calls without their answer'])
  const gone = [0, 10, 20].map((at) => ({ ...standing, at, servers: at === 20 ? 199 : 200 }))
  expect(judged(steps, { standing: gone })).toEqual(['servers that were not up at a look'])
})

test('a plot of nothing but zeros has an axis that can be read', () => {
  const zeros = { name: 'at rest', hue: 0, points: [1, 10].map((n): [number, number] => [n, 0]) }
  const drawn = plot({ what: 'CPU', unit: '%', along: 'servers' }, [zeros])
  const ticks = [...drawn.matchAll(/of-y"[^>]*>([^<]*)</g)].map(([, tick]) => tick)
  expect(ticks).toEqual(['0', '0.2', '0.4', '0.6', '0.8', '1'])
})
