// What is run for the daemon: it ends as it would by itself, and with the process that had it started.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { findInitBinary } from '../../../src/sandbox/init-binary.ts'
import { eventually } from '../../support/eventually.ts'
import { groupOf, isAlive, processesOfGroup } from '../../support/leaks.ts'

const init = await findInitBinary()

const run = async (...command: readonly string[]) => {
  const child = spawn(init, ['kept', `${process.pid}`, ...command], { stdio: ['ignore', 'pipe', 'pipe'] })
  const [out, error, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null, string | null]>,
  ])
  return { out, error, code, signal }
}

test('a program ends with its own status or signal, in a session of its own, with its streams and no descriptor more', async () => {
  expect(await run('/bin/sh', '-c', 'echo "$0 $1"; exit 7', 'a', 'b c')).toEqual({
    out: 'a b c\n',
    error: '',
    code: 7,
    signal: null,
  })
  expect(await run('sh', '-c', 'kill -9 $$')).toMatchObject({ code: null, signal: 'SIGKILL' })
  const { out } = await run('sh', '-c', 'ls /proc/self/fd; cut -d" " -f5,6 /proc/$$/stat; ps -o ppid= -p $$')
  const [, session = '', keeper = ''] = /^0\n1\n2\n3\n(\d+ \d+)\n\s*(\d+)\n$/.exec(out) ?? []
  expect(session).toBe(`${keeper} ${keeper}`)
})

test('one that can’t be run is said to, and none is run for who is not the parent', async () => {
  expect(await run('/nonexistent')).toMatchObject({
    code: 127,
    error: expect.stringContaining('/nonexistent'),
  })
  expect(await run('/etc/passwd')).toMatchObject({ code: 126 })
  const child = spawn(init, ['kept', '1', '/bin/echo', 'ran'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  expect([out, code]).toEqual(['', 125])
})

test('a signal that asks for its end reaches the program', async () => {
  const child = spawn(
    init,
    ['kept', `${process.pid}`, 'sh', '-c', 'trap "exit 5" TERM; sleep 60 & echo; wait'],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  )
  await once(child.stdout, 'data')
  child.kill('SIGTERM')
  expect(await once(child, 'exit')).toEqual([5, null])
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
})

test('a parent that is killed at any instant of the start leaves nothing', async () => {
  // It starts the keeper, tells its number, and is killed so many tenths of a millisecond later.
  const code = `
    const { spawn } = require('node:child_process')
    const command = ['kept', String(process.pid), 'sh', '-c', 'trap "" TERM HUP; sleep 987652 & sleep 987651']
    const child = spawn(process.argv[1], command, { stdio: 'ignore' })
    process.stdout.write(String(child.pid) + '\\n', () => {
      const until = performance.now() + Number(process.argv[2]) / 10
      while (performance.now() < until) continue
      process.kill(process.pid, 'SIGKILL')
    })`
  for (const tenths of [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) {
    const parent = spawn(process.execPath, ['-e', code, init, `${tenths}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [said] = await Promise.all([text(parent.stdout), once(parent, 'close')])
    const group = Number(said)
    expect(group).toBeGreaterThan(1)
    await eventually(() => processesOfGroup(group).length === 0).finally(
      () => processesOfGroup(group).length > 0 && process.kill(-group, 'SIGKILL'),
    )
  }
})

/** Each leaves its session for one of its own, one of them from a parent that ends at once, and tells its number. */
const leavers = `
  setsid sh -c 'trap "" TERM HUP; echo $$; sleep 987655 & wait' &
  (setsid sh -c 'setsid sh -c "echo \\$\\$; sleep 987656; :" & echo $$; sleep 987657; :' &)
`

test('a parent that is killed leaves nothing of what left its program’s group, and its session', async () => {
  const code = `
    const { spawn } = require('node:child_process')
    const command = ['kept', String(process.pid), 'sh', '-c', process.argv[2]]
    spawn(process.argv[1], command, { stdio: ['ignore', 'inherit', 'ignore'] })
    setInterval(() => undefined, 1000)`
  const parent = spawn(process.execPath, ['-e', code, init, `${leavers} sleep 987658; :`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const left = await leftBy(parent.stdout)
  try {
    parent.kill('SIGKILL')
    await eventually(() => left.every((pid) => !isAlive(pid)))
  } finally {
    for (const pid of left) if (isAlive(pid)) process.kill(-pid, 'SIGKILL')
  }
})

test('what left its group stays where a program ends by itself, as an agent is to', async () => {
  const child = spawn(init, ['kept', `${process.pid}`, 'sh', '-c', `${leavers} read word`], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const left = await leftBy(child.stdout)
  try {
    child.stdin.end('\n')
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(left.map(isAlive)).toEqual([true, true, true])
  } finally {
    for (const pid of left) process.kill(-pid, 'SIGKILL')
  }
})

/** The three that leave, once all of them have told their numbers; each leads a group of its own. */
const leftBy = async (output: Readable): Promise<readonly number[]> => {
  const numbers: number[] = []
  for await (const line of createInterface({ input: output })) if (numbers.push(Number(line)) === 3) break
  expect(numbers.map(groupOf)).toEqual(numbers)
  return numbers
}
