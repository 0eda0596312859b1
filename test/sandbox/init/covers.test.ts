// What the launcher's child covers of /proc, and that nothing of a server runs where it did not.
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { identify, isStopped } from '../../../src/sandbox/proof.ts'
import { compileSeccomp } from '../../../src/sandbox/seccomp.ts'
import { eventually } from '../../support/eventually.ts'
import { frame } from '../../support/init-frames.ts'
import {
  buildInit,
  initOrders,
  InitProcess,
  outcome,
  outerOrders,
  shell,
} from '../../support/init-sandbox.ts'
import { childrenOf } from '../../support/processes.ts'

const binary = buildInit()
const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
const filter = compileSeccomp({ base: 'strict', allow: [], deny: [] }, arch)
const kinds = { file: 0, folder: 1 } as const
const covers = [
  ['file', '/proc/version'],
  ['folder', '/proc/fs'],
  ['file', '/proc/cmdline'],
  ['folder', '/proc/driver'],
] as const
const ordered = frame('C')

const launched = (
  script: string,
  asked: readonly (readonly [keyof typeof kinds, string])[] = covers,
  told: readonly Buffer[] = [ordered],
): InitProcess => {
  const orders = outerOrders({ data: [{ option: '--seccomp', bytes: filter }] })
  const frames = asked.map(([kind, path]) => frame('v', kinds[kind], path))
  return new InitProcess(binary, ['outer']).send(...frames, ...orders, ...told, ...initOrders(shell(script)))
}

const said = async (sandbox: InitProcess): Promise<string> => {
  await using it = sandbox
  const { stdout, diagnostics } = await outcome(it)
  return stdout + diagnostics
}

describe('under the filter of every sandbox', () => {
  it('a file opens for nobody, a folder is empty, and neither can be written', async () => {
    const script = `
      for path in /proc/version /proc/cmdline; do cat < $path || echo shut; done
      ls -A /proc/fs /proc/driver; chmod 777 /proc/fs || echo unchanged; > /proc/driver/new || echo read-only`
    const found = await said(launched(`{ ${script}\n} 2>/dev/null`))
    expect(found).toBe('shut\nshut\n/proc/driver:\n\n/proc/fs:\nunchanged\nread-only\n')
  })

  it('without covers the same files are read', async () => {
    const found = await said(launched('read line < /proc/version && echo $line', [], []))
    expect(found).toContain(readFileSync('/proc/version', 'utf8').trim())
  })

  it('each is on a mount of its own on which nothing is written, executed, or a device', async () => {
    const found = await said(launched('while read line; do echo $line; done < /proc/self/mountinfo'))
    const lines = found.split('\n').map((line) => line.split(' '))
    for (const [, path] of covers)
      expect(lines.find((words) => words[4] === path)?.[5]?.split(',')).toEqual(
        expect.arrayContaining(['ro', 'nosuid', 'nodev', 'noexec']),
      )
  })

  it('who made them is gone before the server runs, and left it no descriptor', async () => {
    await using sandbox = launched('ls -1 /proc/self/fd | tr "\\n" " "; sleep 60')
    await sandbox.report('S')
    // 3 is the folder that ls reads.
    await eventually(() => sandbox.stdout().toString() === '0 1 2 3 ')
    const monitor = sandbox.child.pid ?? 0
    await eventually(() => childrenOf(monitor).length === 1)
  })
})

/** Who is in a session, zombies apart. */
const membersOf = (session: number): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => identify(pid)?.session === session)

it('a tool that is killed as it starts leaves no child that waits for it, whoever else is gone', async () => {
  for (let round = 0; round < 120; round++) {
    await using sandbox = launched('sleep 60')
    const pid = sandbox.child.pid ?? 0
    await delay(Math.random() * 25)
    if (sandbox.child.exitCode === null) process.kill(pid, 'SIGKILL')
    await eventually(() => membersOf(pid).length === 0)
  }
})

describe('nothing of a server runs', () => {
  it('where nobody is there to make them', async () => {
    await using sandbox = launched('echo ran', [])
    const { code, diagnostics, stdout, reports } = await outcome(sandbox)
    expect({ code, stdout, reports }).toEqual({ code: 125, stdout: '', reports: [] })
    expect(diagnostics).toMatch(/^sallyport-init: covers: the launcher's child: /)
  })

  it('where there is nothing to cover, which is named', async () => {
    await using sandbox = launched('echo ran', [...covers, ['file', '/proc/not there']])
    const { code, diagnostics, stdout, reports } = await outcome(sandbox)
    expect({ code, stdout, reports }).toEqual({ code: 125, stdout: '', reports: [] })
    expect(diagnostics).toBe('sallyport-init: covers: /proc/not there: No such file or directory\n')
  })

  it('where what is a folder should be covered as a file', async () => {
    expect(await said(launched('echo ran', [['file', '/proc/fs']]))).toBe(
      'sallyport-init: covers: /proc/fs: Not a directory\n',
    )
  })

  it.each(['/etc/passwd', '/proc/', '/proc/../etc', '/procfs'])(
    'where %s should be covered',
    async (path) => {
      expect(await said(launched('echo ran', [['file', path]]))).toBe(
        `sallyport-init: covers: ${path}: not a path below /proc\n`,
      )
    },
  )

  it('where PID 1 is told twice', async () => {
    expect(await said(launched('echo ran', covers, [ordered, ordered]))).toMatch(/covers: given twice/)
  })

  it('and nobody is left waiting, where the supervisor ends while somebody keeps the child from it', async () => {
    await using sandbox = new InitProcess(binary, ['outer']).send(
      ...covers.map(([kind, path]) => frame('v', kinds[kind], path)),
      ...outerOrders(),
    )
    const monitor = sandbox.child.pid ?? 0
    // Nothing is asked of it before PID 1 has its orders.
    await eventually(() => childrenOf(monitor).length === 2)
    const [child = 0] = childrenOf(monitor)
    // It ends with the tool from before it waits.
    await eventually(() => readFileSync(`/proc/${child}/stat`, 'utf8').includes(') S '))
    process.kill(child, 'SIGSTOP')
    await eventually(() => isStopped(child))
    sandbox.send(ordered, frame('r')).hangUp()
    await eventually(() => identify(child) === null)
    expect(await outcome(sandbox)).toMatchObject({ code: 125, reports: [] })
  })

  it('and nobody is left waiting, where the tool fails before PID 1 is there', async () => {
    await using sandbox = new InitProcess(binary, ['outer']).send(
      ...covers.map(([kind, path]) => frame('v', kinds[kind], path)),
      ...outerOrders({ bwrap: ['--ro-bind', '/nowhere', '/nowhere'] }),
    )
    const session = sandbox.child.pid ?? 0
    expect((await outcome(sandbox)).code).not.toBe(0)
    await eventually(() => !pids().some((pid) => identify(pid)?.session === session))
  })
})

const pids = (): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
