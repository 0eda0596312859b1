// What `--out` names is whole, or what it was: whoever ends the command, and whatever the disk says.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  chown,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newOut, replaceOut } from '../../src/cli/out.ts'
import { asUser } from '../support/as-user.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { type Fault, faults } from '../support/fault.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, ordinaryUid } from '../support/user.ts'

const former = 'what the file had before\n'

describe('a command that is ended in its write', () => {
  test('leaves what was there, and no half of anything', async () => {
    await using at = await daemon(configOf({ plain: fixture('echo') }))
    await using out = await tempDir()
    const fault = faults(at.folder)
    const file = join(out.path, 'file')
    const ended = async (when: Fault, args: readonly string[]) => {
      fault.arm(when)
      return at.run([...args, '--out', file], { env: fault.env })
    }
    // Not there before, and not there now.
    for (const when of ['kill-before', 'kill-half'] as const) {
      expect((await ended(`${when} # A draft`, ['declare', 'plain'])).status).not.toBe(0)
      expect((await ended(`${when} "daemon":"d-`, ['audit', 'export'])).status).not.toBe(0)
      await expect(lstat(file)).rejects.toMatchObject({ code: 'ENOENT' })
    }
    // There before, and the same now.
    await writeFile(file, former)
    for (const when of ['kill-before', 'kill-half'] as const) {
      expect((await ended(`${when} # A draft`, ['declare', 'plain', '--force'])).status).not.toBe(0)
      expect(await readFile(file, 'utf8')).toBe(former)
    }
  })

  test('as one that finds no room leaves nothing beside it', async () => {
    await using at = await daemon(configOf({ plain: fixture('echo') }))
    await using out = await tempDir()
    const fault = faults(at.folder)
    const file = join(out.path, 'file')
    for (const [needle, ...args] of [
      ['# A draft', 'declare', 'plain'],
      ['"daemon":"d-', 'audit', 'export'],
    ] as const) {
      fault.arm({ torn: 'ENOSPC', needle })
      const { status, stderr } = await at.run([...args, '--out', file], { env: fault.env })
      expect({ status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining('ERR_SHORTAGE') })
      expect(await readdir(out.path)).toEqual([])
    }
    await writeFile(file, former)
    fault.arm({ torn: 'ENOSPC', needle: '# A draft' })
    const { status } = await at.run(['declare', 'plain', '--force', '--out', file], { env: fault.env })
    expect(status).toBe(1)
    expect(await readdir(out.path)).toEqual(['file'])
    expect(await readFile(file, 'utf8')).toBe(former)
  })
})

describe('a file that is replaced', () => {
  const text = 'what is written now\n'

  test('keeps its mode, its owner and the links that lead to it', async () => {
    await using at = await tempDir()
    const [file, way, first] = ['file', 'way', 'first'].map((name) => join(at.path, name)) as [
      string,
      string,
      string,
    ]
    await writeFile(file, former)
    await chmod(file, 0o751)
    if (isRoot) await chown(file, ordinaryUid, ordinaryUid)
    await symlink('file', way)
    await symlink(way, first)
    const before = await stat(file)
    await replaceOut(first, text, 0o600)
    expect(await readFile(file, 'utf8')).toBe(text)
    const { mode, uid, gid, ino } = await stat(file)
    expect({ mode, uid, gid }).toEqual({ mode: before.mode, uid: before.uid, gid: before.gid })
    expect(ino).not.toBe(before.ino)
    expect((await readdir(at.path)).sort()).toEqual(['file', 'first', 'way'])
    expect((await lstat(first)).isSymbolicLink()).toBe(true)
  })

  test('may be a link to what is not there yet', async () => {
    await using at = await tempDir()
    await symlink('file', join(at.path, 'way'))
    await replaceOut(join(at.path, 'way'), text, 0o600)
    expect(await readFile(join(at.path, 'file'), 'utf8')).toBe(text)
    expect((await readdir(at.path)).sort()).toEqual(['file', 'way'])
  })

  test('gets the mode that is asked for where there was none', async () => {
    await using at = await tempDir()
    await replaceOut(join(at.path, 'file'), text, 0o600)
    expect((await stat(join(at.path, 'file'))).mode & 0o777).toBe(0o600)
  })

  test('is written to where a descriptor has it open', async () => {
    await using at = await tempDir()
    const file = join(at.path, 'file')
    await writeFile(file, `${former}${former}`)
    const { ino } = await stat(file)
    await using handle = await open(file, 'r+')
    await replaceOut(`/dev/fd/${handle.fd}`, text, 0o600)
    expect(await readFile(file, 'utf8')).toBe(text)
    expect((await stat(file)).ino).toBe(ino)
    expect(await readdir(at.path)).toEqual(['file'])
  })

  test('is a pipe where the path names one', async () => {
    await using at = await tempDir()
    const pipe = join(at.path, 'pipe')
    execFileSync('mkfifo', [pipe])
    const reader = spawn('cat', [pipe])
    let heard = ''
    reader.stdout.on('data', (chunk: Buffer) => (heard += chunk.toString()))
    await Promise.all([replaceOut(pipe, text, 0o600), once(reader, 'close')])
    expect(heard).toBe(text)
    expect((await lstat(pipe)).isFIFO()).toBe(true)
  })

  test('is not one that may not be written to', async () => {
    await using at = await tempDir()
    await mkdir(join(at.path, 'folder'))
    await expect(replaceOut(join(at.path, 'folder'), text, 0o600)).rejects.toMatchObject({
      code: 'ERR_USAGE',
      message: expect.stringContaining('is a folder'),
    })
    expect(await readdir(at.path)).toEqual(['folder'])
  })

  test.runIf(isRoot)('is written to where its folder takes no other', async () => {
    await using at = await tempDir()
    await chmod(at.path, 0o755)
    const file = join(at.path, 'file')
    await writeFile(file, `${former}${former}`)
    await chown(file, ordinaryUid, ordinaryUid)
    await asUser('fixtures/replace-out.ts', file, text)
    expect(await readFile(file, 'utf8')).toBe(text)
    expect(await readdir(at.path)).toEqual(['file'])
    await chmod(file, 0o444)
    await expect(asUser('fixtures/replace-out.ts', file, former)).rejects.toMatchObject({
      stderr: expect.stringContaining('EACCES'),
    })
    expect(await readFile(file, 'utf8')).toBe(text)
  })
})

describe('a file that must be new', () => {
  test('is not there before it is kept, and never without that', async () => {
    await using at = await tempDir()
    const file = join(at.path, 'file')
    {
      await using out = await newOut(file, 0o600, 'name another')
      await out.write('lost')
      await expect(lstat(file)).rejects.toMatchObject({ code: 'ENOENT' })
    }
    expect(await readdir(at.path)).toEqual([])
    {
      await using out = await newOut(file, 0o600, 'name another')
      await out.write('one, ')
      await out.write('two')
      await out.keep()
    }
    expect(await readFile(file, 'utf8')).toBe('one, two')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(at.path)).toEqual(['file'])
  })

  test('is not put in the place of what came meanwhile, be it a link to nothing', async () => {
    await using at = await tempDir()
    const file = join(at.path, 'file')
    await using out = await newOut(file, 0o600, 'name another')
    await out.write('late')
    await symlink('nothing', file)
    await expect(out.keep()).rejects.toMatchObject({ code: 'ERR_USAGE' })
    expect((await lstat(file)).isSymbolicLink()).toBe(true)
    await expect(newOut(file, 0o600, 'name another')).rejects.toMatchObject({ code: 'ERR_USAGE' })
  })
})
