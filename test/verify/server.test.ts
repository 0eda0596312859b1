// sallyport verify --server: the battery with what a server's own entry gives it, and the server itself, looked at from outside.
import { existsSync, readdirSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { configOf, fixture, place, serve, type Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { cgroupsOf, processesWith } from '../support/leaks.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isSound } from '../support/verification.ts'

interface Result {
  readonly verdict: string
  readonly observed: string
  readonly evidence: readonly string[]
}
interface Report {
  readonly verdict: string
  readonly verifications: readonly {
    readonly profile: string
    readonly server: string | null
    readonly verdict: string
    readonly probes: readonly (Result & { readonly id: string })[]
    readonly enforced_by: Readonly<Record<string, string>>
    readonly inspections: readonly (Result & { readonly id: string })[]
    readonly assertions: readonly (Result & { readonly text: string })[]
  }[]
}

const inspections =
  `server.started server.introduced server.listed server.called process.tree process.namespaces
  process.cgroup process.limits process.ids process.capabilities process.no-new-privileges process.seccomp process.mounts
  process.descriptors process.listening process.environment server.gone`.split(/\s+/)

const rules = [
  { permission: 'mcp:*:fail', action: 'deny' },
  { permission: 'mcp:*:echo', action: 'ask' },
  { permission: 'mcp:*:*', action: 'allow' },
]

const stated = `version: 1
assertions:
  - { assert: can read /workspace/a.txt, reason: the documents }
  - { assert: cannot write /workspace/a.txt, reason: they are only read }
  - { assert: cannot call fail, reason: r, servers: [echo] }
  - { assert: must ask echo, reason: r, servers: [echo] }
  - { assert: cannot call e*, reason: r, servers: [echo] }
  - { assert: cannot call absent, reason: r, servers: [echo] }
`

/** A server with a mount, a variable and a title of its own. */
const documented = async (docs: string): Promise<object> => {
  await chmod(docs, 0o755)
  await writeFile(join(docs, 'a.txt'), 'a', { mode: 0o644 })
  const mounts = [{ source: docs, target: '/workspace', access: 'read', reason: 'documents' }]
  const echo = fixture('titled', { profile: 'documented', mounts, env: { REGION: 'north' } })
  return configOf({ echo }, { rules })
}

const profile = 'version: 1\nname: documented\nextends: node\nwidens: true\nfilesystem: { mounts: read }\n'

const prepare = async ({ folder }: Place): Promise<void> => {
  await mkdir(join(folder, 'profiles'))
  await writeFile(join(folder, 'profiles/documented.yaml'), profile, { mode: 0o600 })
  await writeFile(join(folder, 'stated.yaml'), stated)
}

/** What a verification plants that a report names. */
const canariesIn = ({ verifications }: Report): readonly string[] =>
  verifications.flatMap(({ probes }) =>
    probes
      .filter(({ id }) => ['files.home', 'files.tmp', 'ipc.shared-files'].includes(id))
      .flatMap(({ evidence }) => evidence.flatMap((line) => /(\/[^:]+):/.exec(line)?.[1] ?? [])),
  )

const namesIn = (folder: string): readonly string[] => (existsSync(folder) ? readdirSync(folder) : [])

/** Runs the verb to its end, however long a busy machine takes. */
const verify = async (
  at: Place,
  ...args: readonly string[]
): Promise<{ readonly status: number | null; readonly report: Report }> => {
  const child = at.start(['verify', ...args, '--format', 'json'])
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [out, err, status] = await Promise.all([textOf(child.stdout), textOf(child.stderr), ended])
  if (!out.startsWith('{')) throw new Error(`no report: ${err}`)
  return { status, report: JSON.parse(out) as Report }
}

const textOf = async (stream: Readable | null): Promise<string> => (stream === null ? '' : text(stream))

test('is run, listed, spoken to and looked at, beside a daemon that notices nothing', async () => {
  await using docs = await tempDir()
  await using at = await place(await documented(docs.path))
  await prepare(at)
  await using client = (await serve(at)).client
  const journal = await client.call('audit/query', { limit: 1000 })
  const tests = join(at.folder, 'stated.yaml')
  const { status, report } = await verify(at, '--server', 'echo', '--tests', tests)
  const [verification] = report.verifications
  expect(verification?.probes.filter(({ verdict }) => !isSound(verdict))).toEqual([])
  expect(verification?.probes.length).toBeGreaterThan(100)
  // Where no control group holds anything there is none to be in.
  const isGrouped = Object.values(verification?.enforced_by ?? {}).some((by) => by.startsWith('cgroup'))
  expect(verification?.inspections.map(({ id, verdict }) => `${id} ${verdict}`)).toEqual(
    inspections.map((id) => `${id} ${id === 'process.cgroup' && !isGrouped ? 'not-applicable' : 'pass'}`),
  )
  const seen = (id: string): string =>
    verification?.inspections.find((one) => one.id === id)?.evidence.join('\n') ?? ''
  expect(seen('process.environment')).toContain('REGION')
  expect(seen('process.mounts')).toContain('/workspace ro')
  expect(seen('process.tree')).toContain('which calls itself echo 1.0')
  expect(verification?.assertions.map((each) => `${each.verdict}: ${each.text}`)).toEqual([
    'pass: can read /workspace/a.txt',
    'pass: cannot write /workspace/a.txt',
    'pass: cannot call fail',
    'pass: must ask echo',
    'fail: cannot call e*',
    'error: cannot call absent',
  ])
  expect(verification?.assertions[2]?.evidence).toEqual([
    expect.stringMatching(
      /^fail: deny, sallyport.yaml rules\[0\] denies mcp:\*:fail \(\/.*\/sallyport.yaml:\d+\)$/,
    ),
  ])
  expect([status, verification?.server, verification?.profile]).toEqual([4, 'echo', 'documented'])
  const canaries = canariesIn(report)
  expect(canaries.length).toBeGreaterThanOrEqual(3)
  expect(canaries.filter((path) => existsSync(path))).toEqual([])
  expect(await client.call('audit/query', { limit: 1000 })).toEqual(journal)
})

test.each(['SIGTERM', 'SIGKILL'] as const)('that is ended by %s leaves nothing behind', async (signal) => {
  await using docs = await tempDir()
  await using at = await place(await documented(docs.path))
  await prepare(at)
  const tmp = join(at.folder, 'tmp')
  await mkdir(tmp)
  await chmod(at.folder, 0o711) // what is tried outside runs as nobody
  const child = at.start(['verify', '--server', 'echo'], { TMPDIR: tmp })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await eventually(() => said.includes('inside and outside'))
  const home = namesIn(at.folder).filter((name) => name.startsWith('.sallyport-verify-'))
  const [folder = ''] = home
  const shared = `/dev/shm/${await readFile(join(at.folder, folder, 'canary'), 'utf8')}`
  const state = namesIn(tmp).find((name) => name.startsWith('sallyport-verify-state-')) ?? ''
  const [record = ''] = namesIn(join(tmp, state, 'daemons'))
  expect([home.length, existsSync(shared), record]).toEqual([1, true, expect.stringMatching(/^d-.*\.json$/)])
  child.kill(signal)
  await eventually(() => namesIn(tmp).length === 0)
  await eventually(() => !namesIn(at.folder).includes(folder) && !existsSync(shared))
  await eventually(() => cgroupsOf(record.replace('.json', '')).length === 0)
  await eventually(() => processesWith(tmp).length === 0)
})
