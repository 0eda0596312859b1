// The guard whose daemon opened what is locked: the lock is of the open files, and lives as long as either of them has these.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { buildInit } from '../../support/init-sandbox.ts'
import { tempDir } from '../../support/temp-dir.ts'

const binary = buildInit()

/** What a daemon passes, opened by this process. */
function opened(...directories: readonly string[]): Disposable & { readonly descriptors: readonly number[] } {
  const descriptors = directories.flatMap((directory) => [
    openSync(join(directory, 'daemon.lock'), 'a+', 0o600),
    openSync(directory, 'r'),
  ])
  return { descriptors, [Symbol.dispose]: () => descriptors.forEach((descriptor) => closeSync(descriptor)) }
}

function guard(descriptors: readonly number[], ...directories: readonly string[]): ChildProcess {
  const stdio = ['pipe' as const, 'pipe' as const, 'pipe' as const, ...descriptors]
  return spawn(binary, ['guard', 'passed', ...directories], { env: {}, stdio })
}

async function ended(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode
}

async function firstWords(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error('it has no output')
  return String((await once(child.stdout, 'data'))[0])
}

/** Whether anybody else may lock it. */
const isFree = (path: string): boolean => spawnSync('flock', ['-n', path, 'true']).status === 0

it('its locks outlive a guard that is killed, and are had by the next one, until that is told that all is done', async () => {
  await using folder = await tempDir()
  const directories = ['run', 'state'].map((name) => join(folder.path, name))
  for (const directory of directories) await mkdir(directory)
  const all = directories.flatMap((directory) => [directory, join(directory, 'daemon.lock')])
  using locks = opened(...directories)
  const first = guard(locks.descriptors, ...directories)
  expect(await firstWords(first)).toBe('held\n')
  first.kill('SIGKILL')
  await ended(first)
  expect(all.filter(isFree)).toEqual([])
  const next = guard(locks.descriptors, ...directories)
  expect(await firstWords(next)).toBe('held\n')
  next.stdin?.end('done\n')
  expect(await ended(next)).toBe(0)
  // Though this process, as a daemon that hangs as it exits, has them open still.
  expect(all.filter(isFree)).toEqual(all)
})

it('its locks outlive the daemon’s descriptors, for as long as the guard takes down what is left', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'daemon.lock')
  const locks = opened(folder.path)
  const one = guard(locks.descriptors, folder.path)
  expect(await firstWords(one)).toBe('held\n')
  locks[Symbol.dispose]()
  expect(isFree(path)).toBe(false)
  one.stdin?.end()
  await ended(one)
  expect(isFree(path)).toBe(true)
})

it('is none of what it was not passed, or of what is no lock', async () => {
  await using folder = await tempDir()
  using locks = opened(folder.path)
  const [file = -1, directory = -1] = locks.descriptors
  for (const descriptors of [[], [file], [directory, file], [directory, directory]]) {
    const one = guard(descriptors, folder.path)
    expect(await ended(one)).toBe(125)
  }
})
