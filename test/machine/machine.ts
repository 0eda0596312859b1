// `npm run machine -- [--profile NAME]… [--keep]`: boots an emulated Debian with systemd, where control groups are of version 2 and
// belong to systemd, and has it verify profiles there, as root and as a user who has logged in. Status 1 where one does not hold.
// Of root, with debootstrap, mke2fs and qemu: made for a machine whose own control groups are of version 1, or given to nobody.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { base, run } from './base.ts'

const clone = fileURLToPath(new URL('../..', import.meta.url))
/** What of the clone the machine gets: built, with all packages, so that tests run there, too */
const parts = [
  'package.json',
  'vitest.config.ts',
  'tsconfig.json',
  'dist',
  'docs',
  'node_modules',
  'profiles',
  'sandbox',
  'src',
  'test',
]
const everyProfile = ['offline', 'node', 'allowlisted-egress', 'browser']
const emulation = ['-accel', 'tcg,thread=multi,tb-size=1024', '-cpu', 'max']
const sized = '-smp 2 -m 3072 -display none -monitor none -no-reboot -nic none'.split(' ')
/** Each profile takes up to two minutes, twice, and a busy machine several times that */
const patienceMs = 45 * 60_000

const options = readOptions()
if (process.geteuid?.() !== 0) stop('a file system with users in it is made by root alone; run it as root')
const folder = await mkdtemp(join(tmpdir(), 'sallyport-machine-'))
try {
  const { disk, kernel, initrd } = await base()
  const job = await jobDisk()
  const { passed, failed } = await boot({ disk, kernel, initrd, job })
  process.stdout.write(`${passed} passed, ${failed} failed\n`)
  if (failed > 0 || passed === 0) process.exitCode = 1
} finally {
  if (options.keep) process.stderr.write(`kept: ${folder}\n`)
  else await rm(folder, { recursive: true, force: true })
}

/** The disk with the clone on it, and what is to be done. */
async function jobDisk(): Promise<string> {
  const [tree, disk] = [join(folder, 'tree'), join(folder, 'job.img')]
  for (const part of parts)
    await cp(join(clone, part), join(tree, part), { recursive: true, verbatimSymlinks: true })
  await run('mke2fs', ['-q', '-t', 'ext4', '-d', tree, disk, '2G'])
  await rm(tree, { recursive: true })
  return disk
}

/** Runs the machine to its end, says what it checks, and counts it. Throws where it does not come to its end. */
async function boot(
  at: Readonly<Record<'disk' | 'kernel' | 'initrd' | 'job', string>>,
): Promise<{ passed: number; failed: number }> {
  const consolePath = join(folder, 'console.log')
  const machine = spawn(
    'qemu-system-x86_64',
    [
      ...emulation,
      ...sized,
      '-serial',
      `file:${consolePath}`,
      '-serial',
      'stdio',
      '-drive',
      `file=${at.disk},if=virtio,format=raw,snapshot=on`,
      '-drive',
      `file=${at.job},if=virtio,format=raw`,
      '-kernel',
      at.kernel,
      '-initrd',
      at.initrd,
      '-append',
      `root=/dev/vda rw console=ttyS0 quiet sallyport.profiles=${options.profile.join(',')}`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const late = setTimeout(() => machine.kill(), patienceMs)
  const ended = once(machine, 'exit')
  const count = { passed: 0, failed: 0 }
  let isDone = false
  for await (const line of createInterface({ input: machine.stdout })) {
    process.stdout.write(`${line}\n`)
    if (line.startsWith('ok      ')) count.passed += 1
    if (line.startsWith('FAILED  ')) count.failed += 1
    if (line.startsWith('done')) isDone = true
  }
  await ended
  clearTimeout(late)
  if (isDone) return count
  const said = (await readFile(consolePath, 'utf8').catch(() => '')).split('\n').slice(-30).join('\n')
  throw new Error(`the machine ended before its work was done; its console’s last lines:\n${said}`)
}

function readOptions(): {
  readonly profile: readonly string[]
  readonly keep: boolean
} {
  try {
    const { values } = parseArgs({
      options: {
        profile: { type: 'string', multiple: true, default: everyProfile },
        keep: { type: 'boolean', default: false },
      },
    })
    const unknown = values.profile.find((name) => !everyProfile.includes(name))
    if (unknown !== undefined) stop(`--profile ${unknown}: expected one of ${everyProfile.join(', ')}`)
    return values
  } catch (error) {
    return stop((error as Error).message)
  }
}

function stop(message: string): never {
  process.stderr.write(`machine: ${message}\n`)
  process.exit(7)
}
