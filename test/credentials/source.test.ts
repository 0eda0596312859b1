// Real variables, files and programs: what is no safe source is refused, and no error ever says what a source gave.
import { spawn } from 'node:child_process'
import { chmod, chown, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readSecret } from '../../src/credentials/secret.ts'
import type { CredentialSource, InjectionKind } from '../../src/schema/credentials.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'
import { withoutDescriptors } from '../support/no-descriptors.ts'
import { expectRefusal, refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nobody } from '../support/user.ts'

const uid = process.getuid?.() ?? 0
const initPath = await findInitBinary()
const token = 'tok_0123456789abcdef'

const read = async (
  source: CredentialSource,
  {
    kinds = ['egress'],
    environment = {},
    ms = 10_000,
  }: {
    readonly kinds?: readonly InjectionKind[]
    readonly environment?: Readonly<Record<string, string>>
    readonly ms?: number
  } = {},
): Promise<string> => {
  const host = { environment, uid, initPath }
  const bytes = await readSecret('github', source, kinds, host, AbortSignal.timeout(ms))
  return bytes.toString()
}

/** A folder that any user may enter, with a file of the secret and a program that says what it is told. */
async function place() {
  const dir = await tempDir()
  await chmod(dir.path, 0o755)
  const file = `${dir.path}/token`
  await writeFile(file, `${token}\n`, { mode: 0o600 })
  const program = async (script: string): Promise<readonly string[]> => {
    await writeFile(`${dir.path}/program`, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    return [`${dir.path}/program`]
  }
  return { dir, file, program, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() }
}

describe('a variable', () => {
  test('gives its value', async () => {
    expect(await read({ kind: 'env', variable: 'T' }, { environment: { T: token } })).toBe(token)
  })

  test.each([
    ['unset', {}],
    ['empty', { T: '' }],
  ])('that is %s is an error', async (what, environment) => {
    await expectRefusal(
      () => read({ kind: 'env', variable: 'T' }, { environment }),
      'ERR_CREDENTIAL_SOURCE',
      what,
      'github',
    )
  })

  test('is not one that every object has', async () => {
    await expectRefusal(
      () => read({ kind: 'env', variable: 'constructor' }),
      'ERR_CREDENTIAL_SOURCE',
      'unset',
    )
  })
})

describe('a value', () => {
  const refusedAs = async (value: string, kinds: readonly InjectionKind[], ...words: readonly string[]) => {
    const error = await refusal(() =>
      read({ kind: 'env', variable: 'T' }, { environment: { T: value }, kinds }),
    )
    expect(error.code).toBe('ERR_CREDENTIAL_REFUSED')
    for (const word of words) expect(error.message).toContain(word)
    expect(JSON.stringify([error.message, error.details, String(error.cause)])).not.toContain(
      value.slice(0, 8),
    )
  }

  test.each([
    'line\r\nbreak-0123456789',
    'line\nbreak-0123456789',
    'line\rbreak-0123456789',
    'with-nul-\0-0123456789',
  ])('that would end a header is refused: %j', async (value) => {
    for (const kind of ['egress', 'meta', 'file', 'env'] as const)
      await refusedAs(value, [kind], 'line break')
  })

  test('of fewer than 16 bytes is refused where it is swapped, and taken elsewhere', async () => {
    await refusedAs('fifteen-letters', ['egress'], '16')
    await refusedAs('fifteen-letters', ['meta', 'egress'], '16')
    expect(
      await read({ kind: 'env', variable: 'T' }, { environment: { T: 'fifteen-letters' }, kinds: ['env'] }),
    ).toBe('fifteen-letters')
  })

  test('with a control character is refused where it is swapped', async () => {
    await refusedAs('escape-\u001b-0123456789', ['egress'], 'control')
  })
})

describe('a file', () => {
  test('gives what it holds, without one line end', async () => {
    await using at = await place()
    expect(await read({ kind: 'file', path: at.file })).toBe(token)
    await writeFile(at.file, `${token}\n\n`)
    await expectRefusal(() => read({ kind: 'file', path: at.file }), 'ERR_CREDENTIAL_REFUSED', 'line break')
  })

  test.each([0o640, 0o604, 0o620, 0o602, 0o611])('of mode %o is refused', async (mode) => {
    await using at = await place()
    await chmod(at.file, mode)
    const error = await refusal(() => read({ kind: 'file', path: at.file }))
    expect(error.code).toBe('ERR_CREDENTIAL_SOURCE')
    expect(error.message).toContain(at.file)
    expect(error.message).not.toContain(token)
  })

  test('in a folder that others can write is refused, and so is a link from one', async () => {
    await using at = await place()
    const open = `${at.dir.path}/open`
    await mkdir(open)
    await symlink(at.file, `${open}/link`)
    expect(await read({ kind: 'file', path: `${open}/link` })).toBe(token)
    await chmod(open, 0o777)
    await expectRefusal(() => read({ kind: 'file', path: `${open}/link` }), 'ERR_CREDENTIAL_SOURCE', open)
  })

  test.runIf(isRoot)('of another user is refused', async () => {
    await using at = await place()
    await chown(at.file, nobody, nobody)
    await expectRefusal(() => read({ kind: 'file', path: at.file }), 'ERR_CREDENTIAL_SOURCE', `uid ${nobody}`)
  })

  test.each([
    ['is missing', 'gone', 'ENOENT'],
    ['is a folder', '.', 'no regular file'],
  ])('that %s is an error', async (_, name, word) => {
    await using at = await place()
    await chmod(at.dir.path, 0o700)
    await expectRefusal(
      () => read({ kind: 'file', path: `${at.dir.path}/${name}` }),
      'ERR_CREDENTIAL_SOURCE',
      word,
    )
  })

  test('that is empty, or larger than any secret, is an error', async () => {
    await using at = await place()
    await writeFile(at.file, '\n')
    await expectRefusal(() => read({ kind: 'file', path: at.file }), 'ERR_CREDENTIAL_SOURCE', 'empty')
    await writeFile(at.file, 'x'.repeat(9000))
    await expectRefusal(() => read({ kind: 'file', path: at.file }), 'ERR_CREDENTIAL_REFUSED', 'longer')
    await writeFile(at.file, 'x'.repeat(70_000))
    await expectRefusal(() => read({ kind: 'file', path: at.file }), 'ERR_CREDENTIAL_SOURCE', '65536')
  })

  test('is read anew each time', async () => {
    await using at = await place()
    expect(await read({ kind: 'file', path: at.file })).toBe(token)
    await writeFile(`${at.file}.new`, 'rotated-0123456789', { mode: 0o600 })
    await rename(`${at.file}.new`, at.file)
    expect(await read({ kind: 'file', path: at.file })).toBe('rotated-0123456789')
  })

  test.runIf(isRoot)('on a share that hangs fails in time, and nothing else waits for it', async () => {
    await using at = await place()
    const hung = `${at.dir.path}/hung`
    await mkdir(hung)
    const script = fileURLToPath(new URL('../fixtures/hung-sources.ts', import.meta.url))
    const options = ['--mount', '--propagation', 'private', process.execPath, script]
    const child = spawn('unshare', [...options, hung, at.file, initPath])
    const { first, rest, sound } = JSON.parse(await text(child.stdout)) as Record<string, unknown>
    const unread = `ERR_CREDENTIAL_SOURCE credential key can't be read: file ${hung}/secret was not read in time: what it is on may hang`
    const unfound = `ERR_CREDENTIAL_SOURCE credential key can't be read: command ${hung}/program was not found in time: what it is on may hang`
    expect(first).toEqual([...Array.from({ length: 6 }, () => unread), unfound])
    expect(rest).toBe(`${token}\n`)
    expect(sound).toBe(token)
  })
})

describe('a command', () => {
  test('gives what it prints, with an empty environment, no input, and / as its folder', async () => {
    await using at = await place()
    const argv = await at.program(
      '/usr/bin/env >&2; read line && exit 3; echo "$(pwd)|$1|$(tr "\\0" , < /proc/self/environ)"',
    )
    const said = await read({ kind: 'command', argv: [...argv, 'a b;$(id)'] }, { kinds: ['env'] })
    // The shell that is the program sets PWD and its like for its own children, and nothing else is there
    expect(said).toMatch(/^\/\|a b;\$\(id\)\|/)
    expect(
      said
        .split('|')[2]
        ?.split(',')
        .filter((line) => !/^(PWD=\/|SHLVL=\d|_=.*|OLDPWD=?)?$/.test(line)),
    ).toEqual([])
  })

  test('is never run by root, nor with its groups', async () => {
    await using at = await place()
    const argv = await at.program('echo "$(id -ru) $(id -u) $(id -rg) $(id -g) $(id -G)"')
    const said = await read({ kind: 'command', argv }, { kinds: ['env'] })
    if (isRoot) expect(said).toBe(Array.from({ length: 5 }, () => nobody).join(' '))
    else expect(said.split(' ')[0]).toBe(String(uid))
  })

  test('that no descriptor is left for is refused, and nothing fails behind it', async () => {
    expect(await withoutDescriptors('secret', '/usr/bin/true')).toContain('could not be run: EMFILE')
  })

  test.each([
    ['has no interpreter', '#!/nowhere/at/all\n', 'what it is to be run by is not there'],
    ['has a folder for an interpreter', '#!/etc\n', 'it may not be executed'],
  ])('that %s is refused, and told so', async (_, text, why) => {
    await using at = await place()
    const argv = await at.program('')
    await writeFile(String(argv[0]), text)
    await expectRefusal(() => read({ kind: 'command', argv }), 'ERR_CREDENTIAL_SOURCE', why)
  })

  test('that is late is killed with all that it started', async () => {
    await using at = await place()
    const argv = await at.program(`sleep 987654 & echo ${token}; exec sleep 987653`)
    await expectRefusal(
      () => read({ kind: 'command', argv }, { ms: 500 }),
      'ERR_CREDENTIAL_SOURCE',
      'in time',
    )
    await eventually(() => processesWith('98765').length === 0)
  })

  test('that leaves a process behind with its output open does not keep anybody waiting', async () => {
    await using at = await place()
    const argv = await at.program(`sleep 987652 & echo ${token}`)
    await expectRefusal(
      () => read({ kind: 'command', argv }, { ms: 500 }),
      'ERR_CREDENTIAL_SOURCE',
      'in time',
    )
    await eventually(() => processesWith('987652').length === 0)
  })

  test('that leaves a process behind in silence has it killed', async () => {
    await using at = await place()
    const argv = await at.program(`sleep 987651 >/dev/null 2>&1 & echo ${token}`)
    expect(await read({ kind: 'command', argv })).toBe(token)
    await eventually(() => processesWith('987651').length === 0)
  })

  test('that prints without end is stopped', async () => {
    await using at = await place()
    const argv = await at.program('exec yes')
    await expectRefusal(() => read({ kind: 'command', argv }), 'ERR_CREDENTIAL_SOURCE', '65536')
  })

  test('that fails says its status, and nothing that it said', async () => {
    await using at = await place()
    const argv = await at.program(`echo ${token}; echo ${token} >&2; exit 7`)
    const error = await refusal(() => read({ kind: 'command', argv }))
    expect(error.message).toContain('status 7')
    expect(JSON.stringify([error.message, error.details, String(error.cause)])).not.toContain(token)
  })

  test('must be an absolute path', async () => {
    await expectRefusal(
      () => read({ kind: 'command', argv: ['echo', token] }),
      'ERR_CREDENTIAL_SOURCE',
      'absolute',
    )
  })

  test('that others can replace is not run', async () => {
    await using at = await place()
    const ran = `${at.dir.path}/ran`
    const argv = await at.program(`: > ${ran}; echo ${token}`)
    await chmod(argv[0] ?? '', 0o757)
    await expectRefusal(() => read({ kind: 'command', argv }), 'ERR_CREDENTIAL_SOURCE', 'everybody')
    await expect(readFile(ran)).rejects.toThrow('ENOENT')
  })

  test('with a setuid bit is not run', async () => {
    await using at = await place()
    const argv = await at.program(`echo ${token}`)
    await chmod(argv[0] ?? '', 0o4755)
    await expectRefusal(() => read({ kind: 'command', argv }), 'ERR_CREDENTIAL_SOURCE', 'setuid')
  })
})
