// What the host's /proc does not tell of a sandbox's processes is not taken for what they have not.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { processesOf } from '../../src/verify/server/processes.ts'
import type * as Processes from '../../src/verify/server/processes.ts'
import { otherBuild } from '../support/other-build.ts'

/** A process that has a file open, until it is disposed of. */
const holder = async (): Promise<AsyncDisposable & { readonly pid: number }> => {
  const child = spawn('/bin/sh', ['-c', 'exec 7</dev/zero; echo; read _'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  await once(child.stdout, 'data')
  const ended = once(child, 'close')
  return {
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await ended
    },
  }
}

test('a descriptor of which nothing can be read makes all of them unread', async () => {
  await using held = await holder()
  const [plain] = processesOf(held.pid)
  expect(plain?.descriptors).toContainEqual({ fd: 7, leadsTo: '/dev/zero', mount: expect.any(Number) })
  for (const [from, to] of [
    ['fdinfo/${fd}', 'fdinfo/${fd}/'],
    ['/fd/${fd}', '/fd/${fd}/'],
  ] as const) {
    await using build = await otherBuild(['verify/server/processes.js', from, to])
    const other = build.load('verify/server/processes.js') as typeof Processes
    const [found] = other.processesOf(held.pid)
    expect(found?.descriptors, from).toEqual({ unread: expect.stringMatching(/^E/) })
  }
})

test('a process whose status can’t be read is not left out', async () => {
  await using held = await holder()
  await using build = await otherBuild(['verify/server/processes.js', '${name}/status', '${name}/status/'])
  const other = build.load('verify/server/processes.js') as typeof Processes
  expect(() => other.processesOf(held.pid)).toThrow('ENOTDIR')
  expect(processesOf(held.pid).map(({ pid }) => pid)).toEqual([held.pid])
})

test('one that has ended is none', async () => {
  const { pid, ...held } = await holder()
  await held[Symbol.asyncDispose]()
  expect(processesOf(pid)).toEqual([])
})
