// sallyport verify, as CI runs it: what is stated is tried in real sandboxes, and the exit status says what came of it.
import { spawn } from 'node:child_process'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { tempDir } from '../support/temp-dir.ts'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

async function sallyport(...args: readonly string[]) {
  await using home = await tempDir()
  const env = { HOME: home.path, PATH: process.env['PATH'], STATED_TOKEN: 'x' }
  const child = spawn(process.execPath, [cli, 'verify', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [out, err, status] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { out, err, status }
}

const holds = [
  'cannot read /etc/shadow',
  'cannot read /root/**',
  'can read /usr/bin/env',
  'can read /usr/bin/en?',
  'cannot write /usr/bin/*',
  'can write /tmp/new',
  'can exec /usr/bin/env',
  'cannot exec /usr/bin/absent*',
  'cannot connect 127.0.0.1:9',
  'cannot connect example.com:443',
  'cannot resolve example.com',
  'cannot see env *_TOKEN',
  'cannot exceed pids',
  'cannot exceed files',
  'cannot exceed disk',
]
const fails = [
  'can read /etc/shadow',
  'cannot read /usr',
  'cannot read /usr/bin/en?',
  'can write /usr/bin/*',
  'cannot write /tmp/new',
  'cannot write /tmp/**',
  'cannot exec /usr/bin/env',
  'can connect example.com:443',
  'can resolve example.com',
  'cannot see env HOM*',
]
const errors = ['cannot call delete_*', 'must ask write_*']

interface Result {
  readonly verdict: string
  readonly verifications: readonly {
    readonly verdict: string
    readonly probes: readonly { readonly verdict: string }[]
    readonly assertions: readonly {
      readonly text: string
      readonly verdict: string
      readonly evidence: string[]
    }[]
  }[]
}

/** A profile that states nothing of its own, and a test file with these lines. */
async function stating(lines: readonly string[]) {
  const dir = await tempDir()
  await mkdir(`${dir.path}/profiles`)
  await writeFile(`${dir.path}/profiles/stated.yaml`, 'version: 1\nname: stated\nextends: offline\n', {
    mode: 0o600,
  })
  await writeFile(`${dir.path}/sallyport.yaml`, 'version: 1\n', { mode: 0o600 })
  const body = lines.map((line) => `  - { assert: '${line}', reason: r }\n`).join('')
  await writeFile(`${dir.path}/t.yaml`, `version: 1\nassertions:\n${body}`)
  const args = [
    '--profile',
    'stated',
    '--config',
    `${dir.path}/sallyport.yaml`,
    '--tests',
    `${dir.path}/t.yaml`,
  ]
  return { path: dir.path, args, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() }
}

test('what is stated is tried, and told apart: what holds, what does not, what cannot be tried', async () => {
  await using stated = await stating([...holds, ...fails, ...errors])
  const { out, err, status } = await sallyport(...stated.args, '--json')
  expect([status, err]).toEqual([4, expect.stringContaining('1/1 stated (bubblewrap): ')])
  const result = JSON.parse(out) as Result
  const assertions = result.verifications[0]?.assertions ?? []
  const of = (verdict: string): string[] =>
    assertions.flatMap((each) => (each.verdict === verdict ? [each.text] : []))
  expect({ pass: of('pass'), fail: of('fail'), error: of('error') }).toEqual({
    pass: holds,
    fail: fails,
    error: errors,
  })
  const told = (text: string): string | undefined =>
    assertions.find((each) => each.text === text)?.evidence.join('\n')
  expect(told('cannot read /usr/bin/en?')).toBe('/usr/bin/env: open\n1 tried: 1 open, 0 shut')
  expect(holds.filter((text) => told(text) === '')).toEqual([])
  expect(told('cannot write /usr/bin/*')).toMatch(
    /^\/usr\/bin\/.*: E(ACCES|ROFS)\n(.*\n)*\d+ tried: 0 open, \d+ shut$/,
  )
  expect(told('cannot exec /usr/bin/absent*')).toBe('nothing matches in the sandbox')
  expect(told('cannot connect example.com:443')).toContain('\nthere is no door: the sandbox has no network')
  expect(told('cannot resolve example.com')).toMatch(/^inside: example\.com asked of 127\.0\.0\.53: E\w+$/)
  expect(told('cannot see env *_TOKEN')).toMatch(/^\d+ variables are there: [^=]*\bHOME\b[^=]*$/)
  expect(told('cannot exceed files')).toMatch(
    /^the limit is \d+ open files, \d+ were tried: EMFILE, it had \d+$/,
  )
  expect(told('cannot exceed pids')).toMatch(
    /^the limit is \d+ processes, \d+ were tried: EAGAIN, it had \d+\noutside: open$/,
  )
  expect(told('cannot exceed disk')).toMatch(
    /^the limit is \d+ bytes in \/tmp, \d+ were tried: ENOSPC, there are \d+$/,
  )
  expect(out).not.toContain('STATED_TOKEN=')
})

test('a profile whose promises hold is 0, and the report is where --out says', async () => {
  await using stated = await stating(['cannot read /etc/shadow'])
  const { out, status } = await sallyport(
    ...stated.args,
    '--format',
    'sarif',
    '--out',
    `${stated.path}/report.sarif`,
  )
  const report = await readFile(`${stated.path}/report.sarif`, 'utf8')
  const { runs } = JSON.parse(report) as { runs: { results: { level: string }[] }[] }
  // Of an ordinary user to whom no control group was given it says, too, that nothing holds the processor.
  const errors = runs.flatMap(({ results }) => results.filter(({ level }) => level === 'error'))
  expect({ out, status, errors }).toEqual({ out: '', status: 0, errors: [] })
})

describe('before anything is tried', () => {
  test('two ways to say it are refused, to a program in JSON', async () => {
    const { out, status } = await sallyport('--profile', 'offline', '--format', 'tap', '--json')
    expect([status, JSON.parse(out)]).toEqual([7, { error: expect.objectContaining({ code: 1001 }) }])
  })

  test.each([
    [7, 'ERR_USAGE', []],
    [7, 'ERR_USAGE', ['--profile', 'offline', '--format', 'pdf']],
    [8, 'ERR_PROFILE_UNKNOWN', ['--profile', 'offline', '--profile', 'offlin']],
    [7, 'ERR_CONFIG_NOT_FOUND', ['--profile', 'offline', '--tests', '/nonexistent/t.yaml']],
  ] as const)('exit status %i, with %s, of %j', async (status, code, args) => {
    const said = await sallyport(...args)
    expect([said.status, said.out]).toEqual([status, ''])
    expect(said.err).toContain(code)
    expect(said.err.trimEnd()).not.toContain('\n')
  })
})

test('what it plants is for all to read, whatever the umask of whoever asks, and its report is as that has it', async () => {
  await using home = await tempDir()
  const out = join(home.path, 'report.json')
  const asked = [cli, 'verify', '--profile', 'offline', '--json', '--out', out]
  const env = { HOME: home.path, PATH: process.env['PATH'] }
  const child = spawn('sh', ['-c', 'umask 077; exec "$0" "$@"', process.execPath, ...asked], {
    env,
    stdio: 'ignore',
  })
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0)
  expect((await stat(out)).mode & 0o777).toBe(0o600)
})
