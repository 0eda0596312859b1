// The runtime directory's lock: one holder, named to the second; handed on after a death; never silently lost.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Guard } from '../../src/daemon/guard.ts'
import type { GuardOptions } from '../../src/daemon/guard.ts'
import type { SallyportError } from '../../src/errors.ts'
import { silent } from '../../src/lib/logger.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf, isAlive } from '../support/leaks.ts'
import { withoutDescriptors } from '../support/no-descriptors.ts'
import { tempDir } from '../support/temp-dir.ts'

const initPath = await findInitBinary()
const options = (runtimeDir: string, more: Partial<GuardOptions> = {}): GuardOptions => ({
  initPath,
  runtimeDir,
  stateDir: null,
  log: silent,
  exitsAfter: false,
  onLost: () => undefined,
  isAnswered: async () => true,
  ...more,
})
const inits = (): number[] =>
  childrenOf(process.pid)
    .filter(({ name }) => name === 'sallyport-init')
    .map(({ pid }) => pid)
const others = inits() // of the files before in this process
const guardsOf = (): number[] => inits().filter((pid) => !others.includes(pid))

const theGuard = (): number => {
  const [pid, ...more] = guardsOf()
  if (pid === undefined || more.length > 0) throw new Error(`one guard: ${[pid, ...more].join(', ')}`)
  return pid
}

/** A process that holds the lock of a folder, does that, and lives on. */
async function holding(runtimeDir: string, act = ''): Promise<ChildProcess> {
  const code = `
    import { Guard } from ${JSON.stringify(new URL('../../src/daemon/guard.ts', import.meta.url).href)}
    const guard = await Guard.hold({ ...${JSON.stringify({ initPath, runtimeDir, stateDir: null })}, log: console, exitsAfter: false, onLost() {}, isAnswered: async () => false })
    ${act}
    console.log('held')
    setInterval(() => {}, 1000)`
  const daemon = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(daemon.stdout, 'data')
  return daemon
}

const hasOtherThan = (first: number): boolean => guardsOf().some((pid) => pid !== first)

it.each(['lock', 'guard'] as const)(
  'a %s that there is no descriptor for is told of as the shortage that it is',
  async (what) => {
    await using folder = await tempDir()
    expect(JSON.parse(await withoutDescriptors(what, folder.path))).toMatchObject({
      message: expect.stringMatching(
        /(guard of .* could not be started: .*EMFILE.*|daemon\.lock: .*EMFILE.*); stop what uses up/,
      ),
      data: { code: 'ERR_SHORTAGE', retryable: true },
    })
  },
)

it('the second to come is told who holds the lock', async () => {
  await using folder = await tempDir()
  await using _guard = await Guard.hold(options(folder.path))
  await expect(Guard.hold(options(folder.path))).rejects.toMatchObject({
    code: 'ERR_DAEMON_RUNNING',
    message: expect.stringContaining(String(process.pid)),
  })
})

it('a lock that was let go can be taken at once, and nothing of the guard is left', async () => {
  await using folder = await tempDir()
  for (let turn = 0; turn < 3; turn++) await (await Guard.hold(options(folder.path)))[Symbol.asyncDispose]()
  expect(guardsOf()).toEqual([])
})

it('a guard that is killed is replaced, and the new one knows what to clean up', async () => {
  await using folder = await tempDir()
  const guard = await Guard.hold(options(folder.path))
  guard.cleanUp(`rmdir /${join(folder.path, 'made').slice(1)}`)
  const first = theGuard()
  process.kill(first, 'SIGKILL')
  await eventually(() => hasOtherThan(first))
  await expect(Guard.hold(options(folder.path))).rejects.toMatchObject({ code: 'ERR_DAEMON_RUNNING' })
  await guard[Symbol.asyncDispose]()
  await eventually(() => guardsOf().length === 0)
})

it('a guard whose successor is killed as it starts is replaced all the same', async () => {
  await using folder = await tempDir()
  const program = join(folder.path, 'dies')
  const isToDie = join(folder.path, 'die')
  await writeFile(
    program,
    `#!/bin/sh\nrm '${isToDie}' 2>/dev/null && kill -9 $$\nexec '${initPath}' "$@"\n`,
    {
      mode: 0o755,
    },
  )
  const lost: SallyportError[] = []
  const onLost = (error: SallyportError): unknown => lost.push(error)
  await using _guard = await Guard.hold(options(folder.path, { initPath: program, onLost }))
  const first = theGuard()
  await writeFile(isToDie, '')
  process.kill(first, 'SIGKILL')
  await eventually(() => lost.length > 0 || hasOtherThan(first))
  expect(lost).toEqual([])
  await expect(Guard.hold(options(folder.path))).rejects.toMatchObject({ code: 'ERR_DAEMON_RUNNING' })
})

it('a guard that is killed as its daemon starts is told of as such, and as no bug', async () => {
  await using folder = await tempDir()
  const program = join(folder.path, 'dies')
  await writeFile(program, '#!/bin/sh\nkill -9 $$\n', { mode: 0o755 })
  await expect(Guard.hold(options(folder.path, { initPath: program }))).rejects.toMatchObject({
    code: 'ERR_SHORTAGE',
    message: expect.stringContaining('was ended by SIGKILL as it started'),
  })
})

it('nobody else gets the lock of a daemon that stands still, and whose guard was killed', async () => {
  await using folder = await tempDir()
  const daemon = await holding(folder.path)
  const [guard] = childrenOf(daemon.pid ?? 0)
  daemon.kill('SIGSTOP')
  process.kill(guard?.pid ?? 0, 'SIGKILL')
  try {
    await eventually(() => !isAlive(guard?.pid ?? 0))
    const other = Guard.hold(options(folder.path)).then((one) => one.letGo(true))
    await expect(other).rejects.toMatchObject({
      code: 'ERR_DAEMON_RUNNING',
      message: expect.stringContaining(String(daemon.pid)),
    })
    daemon.kill('SIGCONT')
    await eventually(() => childrenOf(daemon.pid ?? 0).some(({ pid }) => pid !== guard?.pid))
  } finally {
    daemon.kill('SIGKILL')
  }
  await using _next = await Guard.hold(options(folder.path, { isAnswered: async () => false }))
})

it('after a killed daemon the folder is free again, with nothing of it left', async () => {
  await using folder = await tempDir()
  const made = join(folder.path, 'made')
  await mkdir(made)
  await writeFile(join(made, 'sock'), '')
  const daemon = await holding(
    folder.path,
    `guard.cleanUp('rmdir ${made}'); guard.cleanUp('unlink ${made}/sock')`,
  )
  daemon.kill('SIGKILL')
  await using _next = await Guard.hold(options(folder.path, { isAnswered: async () => false }))
  await expect(stat(made)).rejects.toThrow('ENOENT')
})

it('a runtime directory that is gone is an error, not a wait', async () => {
  await using folder = await tempDir()
  await expect(Guard.hold(options(join(folder.path, 'none')))).rejects.toMatchObject({
    code: 'ERR_RUNTIME_UNSAFE',
    message: expect.stringContaining('daemon.lock: its folder is not there'),
  })
})

it.each([
  ['a folder', (lock: string) => mkdir(lock), 'is a folder'],
  ['a link', (lock: string) => symlink('/etc/passwd', lock), 'cannot be written (ELOOP)'],
] as const)('%s in the place of the lock is refused by name, with what helps', async (_, put, why) => {
  await using folder = await tempDir()
  const lock = join(folder.path, 'daemon.lock')
  await put(lock)
  await expect(Guard.hold(options(folder.path))).rejects.toMatchObject({
    code: 'ERR_RUNTIME_UNSAFE',
    message: `${lock}: ${why}; move what is there, mend the disk, or choose another folder with --runtime or --state`,
  })
})

it('a state directory belongs to one daemon, wherever the second would answer, and is free again after a kill', async () => {
  await using folder = await tempDir()
  const [one, two, stateDir] = ['one', 'two', 'state'].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ]
  for (const path of [one, two, stateDir]) await mkdir(path)
  {
    await using _guard = await Guard.hold(options(one, { stateDir }))
    const asked: string[] = []
    const isAnswered = async (directory: string): Promise<boolean> => asked.push(directory) > 0
    await expect(Guard.hold(options(two, { stateDir, isAnswered }))).rejects.toMatchObject({
      code: 'ERR_DAEMON_RUNNING',
      message: expect.stringMatching(
        new RegExp(`daemon ${process.pid}, which serves ${one}, .* ${stateDir}; .* --state`),
      ),
    })
    expect(asked).toEqual([one])
    await rm(join(stateDir, 'daemon.lock')) // under who holds it
    await expect(Guard.hold(options(two, { stateDir }))).rejects.toMatchObject({
      code: 'ERR_DAEMON_RUNNING',
      message: expect.stringContaining('of unknown pid'),
    })
    await using _apart = await Guard.hold(options(two))
  }
  const holder = spawn(initPath, ['guard', one, stateDir], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  holder.stdin.destroy() // what a killed daemon leaves: an end of the stream without `done`
  await using _next = await Guard.hold(options(two, { stateDir, isAnswered: async () => false }))
})
