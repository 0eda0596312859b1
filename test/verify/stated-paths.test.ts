// The paths that an assertion's glob stands for: those that are there, and those that could be made.
import { spawn } from 'node:child_process'
import { chmod, chown, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { findProbesBinary } from '../../src/sandbox/init-binary.ts'
import { tempDir } from '../support/temp-dir.ts'

const isRoot = process.getuid?.() === 0
const nobody = isRoot ? { uid: 65534, gid: 65534 } : {}

type Lines = readonly (readonly [string, string])[]

/** What the probes' program answers to each line, as an ordinary user, paths being those within the folder. */
async function told(
  folder: string,
  lines: Lines,
  openFiles = 1024,
): Promise<readonly { outcome: string; text: string }[]> {
  const program = join(folder, 'probes')
  await copyFile(await findProbesBinary(), program)
  await chmod(program, 0o755)
  const limited = ['-c', 'ulimit -n "$1" && exec "$0"', program, String(openFiles)]
  const child = spawn('/bin/sh', limited, { ...nobody, stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(lines.map(([what, glob]) => `${what}\t${folder}${glob}\n`).join(''))
  const out = await text(child.stdout)
  return out
    .trim()
    .split('\n')
    .map((line) => {
      const { outcome, text: found } = JSON.parse(line) as { outcome: string; text: string }
      return { outcome, text: found.replaceAll(folder, '') }
    })
}

/** The outcome, and the paths that were open, or why nothing was tried. */
async function answers(folder: string, lines: Lines, openFiles?: number): Promise<readonly string[]> {
  return (await told(folder, lines, openFiles)).map(({ outcome, text: found }) => {
    const lines = found.split('\n')
    if (outcome === 'no-effect') return `${outcome} ${lines.at(-1)}`
    const paths = lines.flatMap((line) => /^(.*): open$/.exec(line)?.[1] ?? [])
    return [outcome, ...paths.toSorted()].join(' ').trim()
  })
}

const give = (path: string): Promise<void> => (isRoot ? chown(path, 65534, 65534) : Promise.resolve())

test('a glob to write is open where a new name that it matches could be made, or a file be replaced', async () => {
  await using dir = await tempDir()
  await chmod(dir.path, 0o755)
  for (const [name, mode] of [
    ['empty', 0o755],
    ['shut', 0o555],
    ['kept', 0o755],
  ] as const) {
    await mkdir(join(dir.path, name))
    if (name !== 'shut') await give(join(dir.path, name))
    await chmod(join(dir.path, name), mode)
  }
  await writeFile(join(dir.path, 'kept/file'), 'x', { mode: 0o444 })
  const lines = {
    '/empty/**': 'open /empty/',
    '/empty/*.txt': 'open /empty/',
    '/empty/*/deep': 'ENOENT',
    '/em*': isRoot ? 'open /empty' : 'open / /empty',
    '/*/new': `open /empty/new /kept/new${isRoot ? '' : ' /shut/new'}`,
    '/kept/file': 'open /kept/file',
    '/kept/f*': 'open /kept/ /kept/file',
    ...(isRoot ? { '/shut/**': 'EACCES', '/shut/new': 'EACCES' } : {}),
  }
  const got = await answers(
    dir.path,
    Object.keys(lines).map((glob) => ['write-any', glob] as const),
  )
  expect(Object.fromEntries(Object.keys(lines).map((glob, index) => [glob, got[index]]))).toEqual(lines)
})

test('what a glob names in full is tried in a folder that lists nothing, and the rest of such a folder is not passed', async () => {
  await using dir = await tempDir()
  await chmod(dir.path, 0o755)
  await mkdir(join(dir.path, 'ann/.ssh'), { recursive: true })
  await writeFile(join(dir.path, 'ann/.ssh/id'), 'key', { mode: 0o644 })
  await chmod(join(dir.path, 'ann'), isRoot ? 0o711 : 0o311)
  const got = await answers(dir.path, [
    ['read-any', '/*/.ssh/id'],
    ['read-any', '/*/.ssh/**'],
    ['read-any', '/**/id'],
    ['read-any', '/*/.ssh/absent'],
  ])
  await chmod(join(dir.path, 'ann'), 0o755)
  expect(got).toEqual([
    'open /ann/.ssh/id',
    'open /ann/.ssh/id',
    'no-effect /ann/ lists nothing and may be entered: name what is in it',
    'ENOENT',
  ])
})

test('tells what was tried and what came of each: the first few of what is shut, and how many there were', async () => {
  await using dir = await tempDir()
  await chmod(dir.path, 0o755)
  for (const folder of ['shut', 'closed', 'links']) await mkdir(join(dir.path, folder))
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
    await writeFile(join(dir.path, 'shut', name), 'x', { mode: 0 })
  await writeFile(join(dir.path, 'shut/open'), 'x', { mode: 0o644 })
  await symlink('nowhere', join(dir.path, 'links/dangling'))
  await chmod(join(dir.path, 'closed'), 0)
  const [shut, closed, one, absent, none, dangling] = await told(dir.path, [
    ['read-any', '/shut/*'],
    ['read-any', '/closed/*'],
    ['read-any', '/shut/a'],
    ['read-any', '/absent'],
    ['exec-any', '/links/*.sh'],
    ['read-any', '/links/*'],
  ])
  await chmod(join(dir.path, 'closed'), 0o755)
  const lines = shut?.text.split('\n') ?? []
  expect([shut?.outcome, lines.filter((line) => /^\/shut\/[a-g]: EACCES$/.test(line)).length]).toEqual([
    'open',
    5,
  ])
  expect([lines.includes('/shut/open: open'), lines.at(-1)]).toEqual([true, '8 tried: 1 open, 7 shut'])
  expect(closed?.text).toBe(
    '/closed/: not listed, EACCES\nnothing matches in the sandbox; folders that list nothing: 1',
  )
  expect(one).toEqual({ outcome: 'EACCES', text: '/shut/a: EACCES\n1 tried: 0 open, 1 shut' })
  expect([absent, none]).toEqual(
    Array.from({ length: 2 }, () => ({ outcome: 'ENOENT', text: 'nothing matches in the sandbox' })),
  )
  expect(dangling?.text).toBe('/links/dangling: ENOENT\n1 tried: 0 open, 1 shut')
})

test('follows a link to a folder by each name that it has, and comes to an end where links lead in a circle', async () => {
  await using dir = await tempDir()
  await chmod(dir.path, 0o755)
  await mkdir(join(dir.path, 'releases/one/deep'), { recursive: true })
  for (const folder of ['one', 'one/deep']) await writeFile(join(dir.path, 'releases', folder, 'key'), 'x')
  await symlink('releases/one', join(dir.path, 'current'))
  await symlink('releases/one', join(dir.path, 'last'))
  await symlink('../..', join(dir.path, 'releases/one/up'))
  await symlink('deep', join(dir.path, 'releases/one/again'))
  await symlink('../deep', join(dir.path, 'releases/one/deep/again'))
  const got = await answers(dir.path, [
    ['read-any', '/c*/key'],
    ['read-any', '/**/last/key'],
    ['read-any', '/current/**/key'],
    ['read-any', '/**/up/none'],
  ])
  expect(got).toEqual([
    'open /current/key',
    'open /last/key',
    'open /current/again/key /current/deep/key /current/key',
    'ENOENT',
  ])
})

test('does not hold where something could not be tried: too deep, or for want of descriptors', async () => {
  await using dir = await tempDir()
  await chmod(dir.path, 0o755)
  await mkdir(join(dir.path, ...Array.from({ length: 66 }, () => 'd')), { recursive: true })
  await writeFile(join(dir.path, 'd/d/key'), 'x')
  const [deep, found] = await answers(dir.path, [
    ['read-any', '/**/none'],
    ['read-any', '/d/**/key'],
  ])
  expect(deep).toMatch(/^no-effect (\/d)+ is below more folders than are walked: name what is in it$/)
  expect(found).toBe('open /d/d/key')
  const few = await answers(dir.path, [['read-any', '/**/none']], 12)
  expect(few).toEqual([expect.stringMatching(/^no-effect (\/d)+\/ EMFILE: name what is in it$/)])
})

test('a name may hold anything, and stands for itself alone', async () => {
  await using dir = await tempDir()
  await chmod(dir.path, 0o755)
  await writeFile(join(dir.path, 'a\nb: open\u001b[31m'), 'x')
  await writeFile(join(dir.path, '{main}'), 'x')
  await writeFile(join(dir.path, 'program'), 'true', { mode: 0o755 })
  const [odd, braces, program] = await told(dir.path, [
    ['read-any', '/a*'],
    ['read-any', '/{main}'],
    ['exec-any', '/program'],
  ])
  expect(odd?.text).toBe('/a\\x0ab: open\\x1b[31m: open\n1 tried: 1 open, 0 shut')
  expect([braces?.outcome, program?.outcome]).toEqual(['open', 'open'])
})
