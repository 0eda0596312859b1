// The ways in which a sandbox ends: asked, forced, or left alone. After each, nothing of it is left.
import { readFileSync, readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { frame } from '../../support/init-frames.ts'
import { elapsed, instants } from '../../support/instants.ts'
import { ids, type InitProcess, inParallel, launch, shell } from '../../support/init-sandbox.ts'

/** Host pids below the sandbox tool, PID 1 first. */
const tree = (sandbox: InitProcess): number[] => {
  const found: number[] = []
  const add = (pid: number): void => {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .split(' ')
      .filter(Boolean)
      .map(Number)
    for (const child of children) {
      found.push(child)
      add(child)
    }
  }
  add(sandbox.child.pid ?? 0)
  return found
}

const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

const started = async (script: string, more = {}): Promise<InitProcess> => {
  const sandbox = launch(shell(script.replaceAll('READY', 'echo ready'), more))
  await eventually(() => sandbox.stdout().toString().includes('ready'))
  return sandbox
}

const ignoresAll = 'trap "" TERM INT HUP; READY; while :; do sleep 1; done'

it('SIGTERM reaches the server itself, which may end as it likes', async () => {
  await using sandbox = await started('trap "echo bye; exit 3" TERM; READY; while :; do sleep 0.01; done')
  sandbox.send(frame('T'))
  expect((await sandbox.ended).code).toBe(3)
  expect(sandbox.stdout().toString()).toBe('ready\nbye\n')
})

it('SIGTERM reaches a server that is stopped', async () => {
  await using sandbox = await started('trap "exit 4" TERM; READY; kill -STOP $$; sleep 60')
  const [, server] = tree(sandbox)
  await eventually(() => /^State:\s*T/m.test(readFileSync(`/proc/${server}/status`, 'utf8')))
  sandbox.send(frame('T'))
  expect((await sandbox.ended).code).toBe(4)
})

it('any signal can be sent to the server', async () => {
  await using sandbox = await started('trap "echo usr1" USR1; READY; while :; do sleep 0.01; done')
  sandbox.send(frame('s', 10))
  await eventually(() => sandbox.stdout().toString().includes('usr1'))
  sandbox.send(frame('s', 9))
  expect((await sandbox.ended).code).toBe(137)
})

it('orders that come in pieces and in one piece are the same', async () => {
  await using sandbox = await started('trap "echo usr1" USR1; READY; while :; do sleep 0.01; done')
  for (const byte of frame('s', 10)) sandbox.send(Buffer.of(byte))
  await eventually(() => sandbox.stdout().toString().includes('usr1'))
  sandbox.send(frame('s', 10), frame('s', 12), frame('K'))
  expect((await sandbox.ended).code).toBe(137)
})

it('kill ends everything at once, whatever it ignores', async () => {
  await using sandbox = await started(
    `(setsid sh -c '${ignoresAll.replace('READY', ':')}' &) ; ${ignoresAll}`,
  )
  const pids = tree(sandbox)
  expect(pids.length).toBeGreaterThanOrEqual(3)
  const before = performance.now()
  sandbox.send(frame('K'))
  expect((await sandbox.ended).code).toBe(137)
  expect(performance.now() - before).toBeLessThan(500)
  expect(pids.filter(isAlive)).toEqual([])
})

it('what the server left behind ends with it: daemons, sessions, holders of its stdout', async () => {
  const script = `(setsid sh -c '${ignoresAll.replace('READY', ':')}' &) ; setsid sleep 60 & nohup sleep 60 >/dev/null 2>&1 & READY; read line; exit 6`
  await using sandbox = await started(script)
  const pids = tree(sandbox)
  expect(pids.length).toBeGreaterThanOrEqual(5)
  sandbox.stdin.end('\n')
  expect((await sandbox.ended).code).toBe(6)
  expect(pids.filter(isAlive)).toEqual([])
})

it('without a supervisor a server has eof_ms to end by itself', async () => {
  await using sandbox = await started('READY; read line; sleep 0.1; exit 9', { eofMs: 5000, termMs: 5000 })
  sandbox.hangUp().stdin.destroy()
  expect((await sandbox.ended).code).toBe(9)
})

it('without a supervisor SIGTERM follows after eof_ms, also to a stopped server', async () => {
  const script = 'trap "sleep 0.1; exit 8" TERM; READY; kill -STOP $$; while :; do sleep 0.01; done'
  await using sandbox = await started(script, { eofMs: 100, termMs: 5000 })
  sandbox.hangUp()
  expect((await sandbox.ended).code).toBe(8)
})

it('without a supervisor everything is gone after eof_ms and term_ms, whatever it ignores', async () => {
  await using sandbox = await started(
    `(setsid sh -c '${ignoresAll.replace('READY', ':')}' &) ; ${ignoresAll}`,
    {
      eofMs: 150,
      termMs: 250,
    },
  )
  const pids = tree(sandbox)
  const before = performance.now()
  sandbox.hangUp()
  expect((await sandbox.ended).code).toBe(137)
  const took = performance.now() - before
  expect(took).toBeGreaterThan(380)
  expect(took).toBeLessThan(900)
  expect(pids.filter(isAlive)).toEqual([])
})

it('a supervisor that reads nothing holds nothing up', async () => {
  await using sandbox = launch(shell('echo ready; read line; exit 2'))
  sandbox.control.pause()
  await eventually(() => sandbox.stdout().toString().includes('ready'))
  sandbox.stdin.end('\n')
  const { promise, resolve } = Promise.withResolvers<number | null>()
  sandbox.child.once('exit', resolve)
  expect(await promise).toBe(2)
})

it('a supervisor killed at any instant of a launch leaves nothing', async () => {
  const marker = `sp-${process.pid}-marker`
  await inParallel(instants(60), async (ms) => {
    const sandbox = launch(shell(`: ${marker}; trap "" TERM; sleep 60`, { eofMs: 50, termMs: 50 }))
    await elapsed(ms)
    for (const stream of [sandbox.control, sandbox.stdin]) stream.destroy()
    await sandbox.ended
  })
  const left = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => isAlive(Number(pid)) && commandOf(pid).includes(marker))
  expect(left).toEqual([])
})

const commandOf = (pid: string): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

it('a killed monitor of the sandbox tool is survived, and the channel still ends the server', async () => {
  await using sandbox = await started('READY; sleep 60', { eofMs: 50, termMs: 50 })
  const pids = tree(sandbox)
  sandbox.child.kill('SIGKILL')
  await eventually(() => sandbox.child.signalCode === 'SIGKILL')
  expect(pids.filter(isAlive)).toEqual(pids)
  sandbox.hangUp()
  await eventually(() => pids.every((pid) => !isAlive(pid)))
  expect(ids.uid).not.toBe(0)
})
