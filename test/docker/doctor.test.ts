// What doctor says of the container engine: what holds each control in containers, or why nothing does and what mends it.
import { chmod, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Diagnosis } from '../../src/sandbox/fingerprint/diagnose.ts'
import { diagnoseEngine, diagnoseInfo } from '../../src/sandbox/docker/diagnose.ts'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { engineTest } from '../support/engine.ts'
import { tempDir } from '../support/temp-dir.ts'

const rowOf = (rows: readonly Diagnosis[], control: Diagnosis['control']): Diagnosis | undefined =>
  rows.find((row) => row.control === control)

engineTest(
  'an engine that is here is said with its version, and what holds its containers',
  async ({ engine: at }) => {
    const rows = await diagnoseEngine(at.environment)
    const info = await at.engine.info()
    expect(rows.filter(({ ok, control }) => !ok && control !== 'gVisor')).toEqual([])
    expect(rowOf(rows, 'container engine')?.enforcedBy).toBe(
      `${info.ServerVersion} at ${at.environment.DOCKER_HOST}, by $DOCKER_HOST`,
    )
    expect(rowOf(rows, 'containers')?.enforcedBy).toContain('seccomp')
    expect(rowOf(rows, 'container limits')?.enforcedBy).toMatch(/^cgroup v[12] /)
  },
)

engineTest(
  'what an engine lacks is weak, with the reason and the mend, and stops no other driver',
  async ({ engine: at }) => {
    const info = await at.engine.info()
    const rows = (change: Partial<typeof info>): readonly Diagnosis[] =>
      diagnoseInfo(at.engine.endpoint, { ...info, ...change })
    const seccomp = 'name=seccomp,profile=default'
    const lacking: readonly (readonly [Diagnosis['control'], Partial<typeof info>, RegExp])[] = [
      ['containers', { SecurityOptions: [] }, /no filters of system calls/],
      ['containers', { SecurityOptions: [seccomp, 'name=rootless'] }, /is rootless and maps users/],
      ['containers', { KernelVersion: '6.1.0-linuxkit' }, /in a machine of its own/],
      ['container limits', { MemoryLimit: false, PidsLimit: false }, /cannot limit memory, pids/],
      ['gVisor', { Runtimes: { runsc: { path: 'runsc', runtimeArgs: [] } } }, /supervisor's socket/],
    ]
    for (const [control, change, cause] of lacking)
      expect(rowOf(rows(change), control)).toMatchObject({
        ok: false,
        isFatal: false,
        cause: expect.stringMatching(cause),
        mend: expect.stringMatching(/\w/),
      })
    const open = { runsc: { path: 'runsc', runtimeArgs: ['--host-uds=open'] } }
    expect(rowOf(rows({ Runtimes: open }), 'gVisor')).toMatchObject({ ok: true })
    const told = (isRoot: boolean): string | null | undefined =>
      rowOf(diagnoseInfo(at.engine.endpoint, info, isRoot), 'containers')?.enforcedBy
    expect(told(true)).toMatch(/, PID 1 compared with init’s file$/)
    expect(told(false)).toMatch(/, PID 1 not compared: only a daemon of root can$/)
  },
)

test('an engine that is named and not there is weak; one that nobody named is no matter', async () => {
  const [named] = await diagnoseEngine({ DOCKER_HOST: 'unix:///nonexistent/docker.sock' })
  expect(named).toMatchObject({
    control: 'container engine',
    ok: false,
    cause: expect.stringContaining('ENOENT'),
  })
  const [odd] = await diagnoseEngine({ DOCKER_HOST: 'tcp://10.0.0.1:2375' })
  expect(odd).toMatchObject({ ok: false, cause: expect.stringContaining('without TLS') })
})

engineTest(
  'an engine reached by ssh is a place for containers where it is this machine’s, and else is refused',
  async ({ engine: at }) => {
    await using folder = await tempDir()
    const socket = at.environment.DOCKER_HOST.replace('unix://', '')
    // What stands at the end of a session: the arguments are kept, and the streams joined to the engine's socket.
    const node = join(folder.path, 'node')
    await symlink(process.execPath, node) // its own path may have a space
    const program = `#!${node}
if (process.argv.slice(2).join(' ') !== '-T -o BatchMode=yes -o ConnectTimeout=10 -p 2222 -- me@there docker system dial-stdio') process.exit(9)
const socket = require('node:net').connect(${JSON.stringify(socket)})
process.stdin.pipe(socket).pipe(process.stdout)`
    await writeFile(join(folder.path, 'ssh'), program)
    await chmod(join(folder.path, 'ssh'), 0o755)
    const rows = await diagnoseEngine({ DOCKER_HOST: 'ssh://me@there:2222', PATH: folder.path })
    expect(rowOf(rows, 'container engine')).toMatchObject({ ok: true })
    expect(rowOf(rows, 'containers')).toMatchObject({ ok: true })
    const elsewhere = { ...(await at.engine.info()), Name: 'another-machine' }
    const there = findEndpoint({ DOCKER_HOST: 'ssh://me@there:2222' })
    expect(rowOf(diagnoseInfo(there, elsewhere), 'containers')).toMatchObject({
      ok: false,
      cause: expect.stringContaining('is elsewhere, on another-machine'),
      mend: expect.stringContaining('run sallyport on that machine'),
    })
    const [refused] = await diagnoseEngine({ DOCKER_HOST: 'ssh://other@there', PATH: folder.path })
    expect(refused).toMatchObject({ ok: false, cause: expect.stringContaining('ssh ended with status 9') })
  },
)
