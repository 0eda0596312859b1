// A file that a person names and that cannot be had: one line that says which, why, and what to do, and never a failure of ours.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { asUser } from '../support/as-user.ts'
import { configOf, daemon, fixture, place } from '../support/daemon.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, ordinaryUid } from '../support/user.ts'

/** Verb, a path in the folder of the daemon, code and exit status, and the words. */
const cases = [
  ['accept plain --declaration', 'none.yaml', 'ERR_CONFIG_NOT_FOUND', 7, 'no such file'],
  ['accept plain --declaration', 'text/none.yaml', 'ERR_CONFIG_NOT_FOUND', 7, 'no such file'],
  ['add other --entry', 'none.yaml', 'ERR_CONFIG_NOT_FOUND', 7, 'no such file'],
  ['audit export --out', 'text', 'ERR_USAGE', 7, 'is there already; name a file that is not there yet'],
  ['audit export --out', 'folder', 'ERR_USAGE', 7, 'is there already'],
  [
    'audit export --out',
    'none/x',
    'ERR_USAGE',
    7,
    'its folder is not there; name a file in a folder that you can write',
  ],
  [
    'declare plain --out',
    'text',
    'ERR_USAGE',
    7,
    'is there already; name another, or replace it with --force',
  ],
  ['declare plain --force --out', 'folder', 'ERR_USAGE', 7, 'is a folder'],
  [
    'declare plain --out',
    'none/x',
    'ERR_USAGE',
    7,
    'its folder is not there; name a file in a folder that you can write',
  ],
  ['declare plain --force --out', '/dev/full', 'ERR_SHORTAGE', 1, 'cannot be written (ENOSPC)'],
  ['verify --profile offline --tests', 'folder', 'ERR_CONFIG_NOT_FOUND', 7, 'is a folder'],
] as const

test('what a verification is to read beside and to write is told of before anything is tried', async () => {
  await using at = await place(configOf({}))
  await mkdir(join(at.folder, 'folder'))
  for (const [option, name, said] of [
    ['--out', 'none/x', 'its folder is not there; name a file in a folder that you can write (ERR_USAGE)'],
    ['--out', 'folder', 'is a folder; name a file in a folder that you can write (ERR_USAGE)'],
    ['--config', 'none.yaml', 'no such file; name another, or leave --config out (ERR_CONFIG_NOT_FOUND)'],
  ] as const) {
    const path = join(at.folder, name)
    const { status, stderr } = await at.run(['verify', '--profile', 'offline', option, path])
    expect({ status, stderr }).toEqual({ status: 7, stderr: `sallyport: ${option} ${path}: ${said}\n` })
  }
})

test('a path that leads nowhere, or to something else, is told by name', async () => {
  await using at = await daemon(configOf({ plain: fixture('echo') }))
  await writeFile(join(at.folder, 'text'), 'hello')
  await mkdir(join(at.folder, 'folder'))
  for (const [line, name, code, expected, words] of cases) {
    const path = resolve(at.folder, name)
    const { status, stderr } = await at.run([...line.split(' '), path])
    expect({ line, path, status, stderr }).toMatchObject({ line, path, status: expected })
    expect(stderr).toMatch(/^sallyport: .*\n$/)
    expect(stderr).toContain(`${path}: ${words}`)
    expect(stderr).toContain(`(${code})`)
  }
})

test('a declaration of the configuration that cannot be read is told with its place', async () => {
  const declaration = 'd'.repeat(300)
  await using at = await place(configOf({ plain: fixture('echo', { declaration }) }))
  const { status, stderr } = await at.run(['serve'])
  expect({ status, stderr }).toEqual({
    status: 7,
    stderr: expect.stringMatching(
      /^sallyport: .*sallyport\.yaml:1:\d+: servers\.plain\.declaration: .*\(ENAMETOOLONG\).* \(ERR_CONFIG_NOT_FOUND\)\n$/,
    ),
  })
})

describe.runIf(isRoot)('what an ordinary user may not read', () => {
  const asked = async (...args: readonly string[]) => {
    const ended: unknown = await asUser('../dist/cli/main.js', ...args).catch((error: unknown) => error)
    const { code = 0, stderr = '' } = { ...(ended as object) } as { code?: number; stderr?: string }
    return { status: code, stderr }
  }

  test('is told, and as whom or where a journal is verified', async () => {
    await using at = await place()
    const elsewhere = String.raw`; a state folder that .* is named with --state \(ERR_NOT_AUTHORISED\)\n$`
    const { status, stderr } = await asked('audit', 'verify', '--state', at.folder)
    expect(status).toBe(6)
    expect(stderr).toMatch(
      new RegExp(
        String.raw`^sallyport: \/.*: uid \d+ may not read it \(EACCES\); verify it as the user .*, or as root${elsewhere}`,
      ),
    )
    const there = await asked('audit', 'verify', '--runtime', at.runtimeDir)
    expect(there.status).toBe(6)
    expect(there.stderr).toMatch(new RegExp(String.raw`^sallyport: this user may not open \/.*${elsewhere}`))
  })

  test.each([['show'], ['explain']])('as a profile, by sallyport profile %s', async (act) => {
    await using at = await place()
    const more = act === 'explain' ? ['path', '/etc'] : []
    const { status, stderr } = await asked('profile', act, join(at.folder, 'x.yaml'), ...more)
    expect(status).toBe(7)
    expect(stderr).toMatch(
      /^sallyport: \/.*x\.yaml: uid \d+ may not read it \(EACCES\); .*\(ERR_CONFIG_NOT_FOUND\)\n$/,
    )
  })

  test('is a warning where a profile grants it', async () => {
    await using at = await place()
    await using open = await tempDir()
    await chmod(open.path, 0o755)
    const profile = join(open.path, 'x.yaml')
    const grant = { path: join(at.folder, 'x'), reason: 'a test' }
    await writeFile(profile, JSON.stringify({ version: 1, name: 'x', filesystem: { read: [grant] } }), {
      mode: 0o644,
    })
    const said = await asUser('../dist/cli/main.js', 'profile', 'lint', profile)
    expect(said).toContain(
      `${grant.path} cannot be looked at by uid ${ordinaryUid} (EACCES): a launch by it would be refused`,
    )
  })

  test('as a folder of its draft, by sallyport profile learn', async () => {
    await using at = await place()
    const { status, stderr } = await asked('profile', 'learn', '--out', join(at.folder, 'x'), 'true')
    expect(status).toBe(7)
    expect(stderr).toMatch(/^sallyport: --out \/.*: uid \d+ may not write it \(EACCES\); .*\(ERR_USAGE\)\n$/)
  })
})
