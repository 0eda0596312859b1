// A command is a file that only the operator could have put there, and it stays that file.
import {
  chmodSync,
  chownSync,
  copyFileSync,
  lchownSync,
  lutimesSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isPrivateGroup } from '../../../src/lib/private-group.ts'
import type { ErrorCode } from '../../../src/errors.ts'
import type { AllowedCommand } from '../../../src/schema/settings.ts'
import { type CommandPin, pinCommand, recheckCommand } from '../../../src/sandbox/program/command.ts'
import { expectRefusal } from '../../support/refusal.ts'
import { allowed } from '../../support/settings.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { words } from '../../../src/lib/words.ts'

const uid = process.getuid?.() ?? -1
const isRoot = uid === 0

/** A folder of the test's own with one program in it, `tool`. */
const arrange = async () => {
  const folder = await tempDir()
  const at = (...names: string[]): string => join(folder.path, ...names)
  mkdirSync(at('bin'), { mode: 0o755 })
  copyFileSync('/bin/true', at('bin', 'tool'))
  chmodSync(at('bin', 'tool'), 0o755)
  return { at, tool: at('bin', 'tool'), [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

const pin = (
  command: string,
  commands: readonly AllowedCommand[],
  commandPath: readonly string[] = [],
): Promise<CommandPin> =>
  pinCommand({ name: 'probe', command }, { allowedCommands: commands, commandPath }, { uid })

const refuse = (act: () => Promise<unknown>, code: ErrorCode, ...words: readonly string[]): Promise<void> =>
  expectRefusal(act, code, 'probe', ...words)

describe('a command', () => {
  test.each([
    ...words(`
      ../node ./node /usr/bin/node bin/node . .. -node nöde node;ls ~node node* .node
    `),
    'a\\node',
    'node\n',
    'node\0',
    '\nnode',
    '',
    'node node',
    '$node',
    'n'.repeat(129),
  ])('%j is refused, even where the list has it', async (name) => {
    await refuse(
      () => pin(name, [allowed('node'), allowed(name), allowed(name, '/bin/true')]),
      'ERR_COMMAND_NOT_ALLOWED',
    )
  })

  test('that the list does not name is refused', async () => {
    await refuse(() => pin('cat', [allowed('true')], ['/usr/bin']), 'ERR_COMMAND_NOT_ALLOWED', 'true')
    await refuse(() => pin('cat', [], ['/usr/bin']), 'ERR_COMMAND_NOT_ALLOWED')
  })

  test('is looked up in command_path alone, in its order, never in PATH', async () => {
    await using place = await arrange()
    const path = process.env['PATH']
    process.env['PATH'] = place.at('bin')
    try {
      await refuse(() => pin('tool', [allowed('tool')], ['/usr/bin']), 'ERR_COMMAND_NOT_FOUND', '/usr/bin')
    } finally {
      process.env['PATH'] = path
    }
    mkdirSync(place.at('later'))
    symlinkSync('/bin/true', place.at('later', 'tool'))
    const found = await pin('tool', [allowed('tool')], [place.at('none'), place.at('bin'), place.at('later')])
    expect(found.file.path).toBe(place.tool)
  })

  test('that the operator gives a path is that file, under the operator’s name', async () => {
    await using place = await arrange()
    const pinned = await pin('mine', [allowed('mine', place.tool)], ['/usr/bin'])
    expect(pinned).toMatchObject({
      name: 'mine',
      path: place.tool,
      kind: { kind: 'program' },
      interpreter: null,
    })
    expect(pinned.file.sha256).toMatch(/^[0-9a-f]{64}$/)
    await refuse(
      () => pin('mine', [allowed('mine', place.at('gone'))]),
      'ERR_COMMAND_NOT_FOUND',
      place.at('gone'),
    )
  })

  test('that is a folder, a device or not executable is refused', async () => {
    await using place = await arrange()
    await refuse(() => pin('it', [allowed('it', place.at('bin'))]), 'ERR_COMMAND_UNSAFE', 'regular file')
    await refuse(() => pin('it', [allowed('it', '/dev/zero')]), 'ERR_COMMAND_UNSAFE')
    chmodSync(place.tool, 0o644)
    await refuse(() => pin('it', [allowed('it', place.tool)]), 'ERR_COMMAND_UNSAFE', 'chmod +x')
  })
})

describe('an untrusted user', () => {
  test.each([
    ['the file', (at: (...names: string[]) => string) => at('bin', 'tool')],
    ['its folder', (at: (...names: string[]) => string) => at('bin')],
    ['a folder above', (at: (...names: string[]) => string) => at()],
  ])('who can write %s makes the command unsafe', async (_, of) => {
    await using place = await arrange()
    const path = of(place.at)
    const { mode } = statSync(path)
    const list = [allowed('tool', place.tool)]
    await pin('tool', list)
    chmodSync(path, (mode & 0o777) | 0o002)
    await refuse(() => pin('tool', list), 'ERR_COMMAND_UNSAFE', path, 'everybody', 'chmod o-w')
    chmodSync(path, (mode & 0o777) | 0o020)
    // Write permission for root's group, or for one's own, is none for anybody else.
    const { gid } = statSync(path)
    if (gid === 0 || (await isPrivateGroup(gid, uid))) await pin('tool', list)
    else await refuse(() => pin('tool', list), 'ERR_COMMAND_UNSAFE', path, 'group')
    chmodSync(path, mode & 0o777)
    await pin('tool', list)
  })

  test('who owns the file or a folder above makes it unsafe', async () => {
    await using place = await arrange()
    const as = (other: number): Promise<CommandPin> =>
      pinCommand(
        { name: 'probe', command: 'tool' },
        { allowedCommands: [allowed('tool', place.tool)], commandPath: [] },
        { uid: other },
      )
    if (!isRoot) {
      await refuse(() => as(uid + 1), 'ERR_COMMAND_UNSAFE', `belongs to uid ${uid}`)
      return
    }
    for (const path of [place.tool, place.at('bin'), place.at()]) {
      chownSync(path, 4321, 0)
      await refuse(() => as(0), 'ERR_COMMAND_UNSAFE', path, 'belongs to uid 4321')
      await as(4321)
      chownSync(path, 0, 0)
    }
    await as(0)
  })

  test('who can write a folder of links makes every command in it unsafe, through any number of links', async () => {
    await using place = await arrange()
    mkdirSync(place.at('farm'))
    symlinkSync(place.tool, place.at('farm', 'tool'))
    mkdirSync(place.at('top'))
    symlinkSync('../farm/tool', place.at('top', 'tool'))
    symlinkSync(place.at('top'), place.at('way'))
    for (const start of [place.at('farm'), place.at('top'), place.at('way')]) {
      expect((await pin('tool', [allowed('tool')], [start])).file.path).toBe(place.tool)
      chmodSync(place.at('farm'), 0o777)
      await refuse(() => pin('tool', [allowed('tool')], [start]), 'ERR_COMMAND_UNSAFE', place.at('farm'))
      chmodSync(place.at('farm'), 0o755)
    }
  })

  test('cannot lead a command in circles', async () => {
    await using place = await arrange()
    symlinkSync('round', place.at('round'))
    await expectRefusal(() => pin('it', [allowed('it', place.at('round'))]), 'ERR_COMMAND_UNSAFE', 'circle')
  })

  test.runIf(isRoot)('who owns an entry of /tmp makes it unsafe, whoever owns what it leads to', async () => {
    await using place = await arrange()
    mkdirSync(place.at('sticky'))
    chmodSync(place.at('sticky'), 0o1777)
    symlinkSync(place.tool, place.at('sticky', 'tool'))
    const list = [allowed('tool', place.at('sticky', 'tool'))]
    await pin('tool', list)
    lchownSync(place.at('sticky', 'tool'), 4321, 0)
    await refuse(() => pin('tool', list), 'ERR_COMMAND_UNSAFE', place.at('sticky', 'tool'), '4321')
    lchownSync(place.at('sticky', 'tool'), 0, 0)
    // Without the sticky bit anybody may replace the link.
    chmodSync(place.at('sticky'), 0o777)
    await refuse(() => pin('tool', list), 'ERR_COMMAND_UNSAFE', place.at('sticky'))
  })
})

describe('a registered command', () => {
  const repin = (pinned: CommandPin): Promise<CommandPin> => recheckCommand(pinned, { uid })

  test('stays itself while nothing changes, and is read again only when its facts differ', async () => {
    await using place = await arrange()
    const pinned = await pin('tool', [allowed('tool', place.tool)])
    expect(await repin(pinned)).toBe(pinned)
    utimesSync(place.tool, 1, 1)
    const renewed = await repin(pinned)
    expect(renewed).not.toBe(pinned)
    expect(renewed.file).toMatchObject({ sha256: pinned.file.sha256, mtimeNs: 1_000_000_000n })
    expect(await repin(renewed)).toBe(renewed)
  })

  test('that was swapped is refused', async () => {
    await using place = await arrange()
    const pinned = await pin('tool', [allowed('tool', place.tool)])
    copyFileSync('/bin/false', place.at('other'))
    chmodSync(place.at('other'), 0o755)
    renameSync(place.at('other'), place.tool)
    await refuse(() => repin(pinned), 'ERR_COMMAND_CHANGED', pinned.file.sha256, 'reload')
  })

  test('that was edited in place is refused, even with its size and mtime put back', async () => {
    await using place = await arrange()
    const pinned = await pin('tool', [allowed('tool', place.tool)])
    const { atime, mtime } = statSync(place.tool)
    const bytes = readFileSync(place.tool)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    writeFileSync(place.tool, bytes)
    utimesSync(place.tool, atime, mtime)
    await refuse(() => repin(pinned), 'ERR_COMMAND_CHANGED')
  })

  test('whose link now leads elsewhere is refused', async () => {
    await using place = await arrange()
    symlinkSync(place.tool, place.at('link'))
    const pinned = await pin('tool', [allowed('tool', place.at('link'))])
    symlinkSync('/bin/false', place.at('new'))
    lutimesSync(place.at('new'), 1, 1)
    renameSync(place.at('new'), place.at('link'))
    await refuse(() => repin(pinned), 'ERR_COMMAND_CHANGED', 'now leads to')
  })

  test('whose folder others can write by now, or that is gone, is refused', async () => {
    await using place = await arrange()
    const pinned = await pin('tool', [allowed('tool', place.tool)])
    chmodSync(place.at('bin'), 0o777)
    await refuse(() => repin(pinned), 'ERR_COMMAND_UNSAFE')
    chmodSync(place.at('bin'), 0o755)
    renameSync(place.tool, place.at('away'))
    await refuse(() => repin(pinned), 'ERR_COMMAND_NOT_FOUND')
  })
})

describe('what a command is', () => {
  test('shows in its content where its name is another', async () => {
    await using place = await arrange()
    copyFileSync('/bin/dash', place.tool)
    expect((await pin('tool', [allowed('tool', place.tool)])).kind).toMatchObject({
      interpreter: { name: 'shell' },
    })
    copyFileSync(process.execPath, place.tool)
    expect((await pin('tool', [allowed('tool', place.tool)])).kind).toMatchObject({
      interpreter: { name: 'node' },
    })
  })

  test('is what the operator says it is, except for a launcher', async () => {
    await using place = await arrange()
    copyFileSync('/bin/dash', place.tool)
    const stated = (word: string, path = place.tool) => pin('tool', [allowed('tool', path, word)])
    expect((await stated('none')).kind).toEqual({ kind: 'program' })
    expect((await stated('python')).kind).toMatchObject({ interpreter: { name: 'python' } })
    expect((await stated('none', '/usr/bin/env')).kind).toMatchObject({ kind: 'launcher' })
    await expectRefusal(() => stated('cobol'), 'ERR_COMMAND_NOT_ALLOWED', 'cobol')
  })

  test('includes, for a script, the program that its first line names', async () => {
    await using place = await arrange()
    const script = (line: string) => {
      writeFileSync(place.tool, `${line}\nexit 0\n`)
      chmodSync(place.tool, 0o755)
      return pin('tool', [allowed('tool', place.tool)], ['/usr/bin'])
    }
    expect((await script('#!/bin/sh -e')).interpreter).toMatchObject({ path: '/bin/sh', argument: '-e' })
    expect((await script('#! /usr/bin/env sh')).interpreter).toMatchObject({
      path: '/usr/bin/sh',
      argument: null,
    })
    for (const line of [
      '#!sh',
      '#!/usr/bin/env -S sh -e',
      '#!/usr/bin/env A=1 sh',
      '#!/bin/true',
      `#!${place.tool}`,
      '#!',
    ])
      await refuse(() => script(line), 'ERR_COMMAND_UNSAFE')
    await refuse(() => script(`#!/bin/sh ${'x'.repeat(300)}`), 'ERR_COMMAND_UNSAFE', 'longer')
    await refuse(() => script('#!/usr/bin/env sh-that-is-not-there'), 'ERR_COMMAND_NOT_FOUND')
  })
})
