// Files that decide over others are read only where nobody else can have written them, and never wait for a writer.
import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdir, symlink, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { readTrusted } from '../../src/config/read.ts'
import { refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nobody } from '../support/user.ts'

const own = process.getuid?.() ?? 0

async function config(content: string | Uint8Array = 'version: 1\n') {
  const dir = await tempDir()
  const folder = `${dir.path}/app`
  await mkdir(folder, { mode: 0o755 })
  const path = `${folder}/sallyport.yaml`
  await writeFile(path, content, { mode: 0o600 })
  const refused = async (at = path) => {
    const { code, message } = await refusal(() => readTrusted(at, [own]))
    return `${code} ${message.replaceAll(dir.path, '')}`
  }
  return { dir: dir.path, folder, path, refused, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() }
}

test('a file of one’s own is read', async () => {
  await using at = await config()
  expect(await readTrusted(at.path, [own])).toEqual({ path: at.path, text: 'version: 1\n', links: 1 })
})

describe('is refused as unsafe', () => {
  test('a file that everybody can write, with the command that mends it', async () => {
    await using at = await config()
    await chmod(at.path, 0o646)
    expect(await at.refused()).toBe(
      'ERR_CONFIG_UNSAFE /app/sallyport.yaml: /app/sallyport.yaml can be written by everybody, so somebody else could decide here; mend it: chmod o-w /app/sallyport.yaml',
    )
    await chmod(at.path, 0o644)
    expect((await readTrusted(at.path, [own])).text).toBe('version: 1\n')
  })

  test('a file in a folder that everybody can write', async () => {
    await using at = await config()
    await chmod(at.folder, 0o777)
    expect(await at.refused()).toMatch(/^ERR_CONFIG_UNSAFE .*: \/app can be written by everybody/)
  })

  test('a link in such a folder to a file that is safe by itself', async () => {
    await using at = await config()
    await mkdir(`${at.dir}/open`)
    await symlink(at.path, `${at.dir}/open/link.yaml`)
    await chmod(`${at.dir}/open`, 0o777)
    expect(await at.refused(`${at.dir}/open/link.yaml`)).toContain('/open can be written by everybody')
  })

  test.runIf(isRoot)('a file, or its folder, of another user’s', async () => {
    await using at = await config()
    await chown(at.path, nobody, nobody)
    expect(await at.refused()).toContain(`belongs to uid ${nobody}`)
    await chown(at.path, 0, 0)
    await chown(at.folder, nobody, nobody)
    expect(await at.refused()).toContain(`/app belongs to uid ${nobody}`)
  })
})

describe('is refused as malformed', () => {
  test('a FIFO, at once', async () => {
    await using at = await config()
    execFileSync('mkfifo', ['-m', '600', `${at.folder}/fifo`])
    expect(await at.refused(`${at.folder}/fifo`)).toContain('not a regular file')
  })

  test('a folder, and a device', async () => {
    await using at = await config()
    expect(await at.refused(at.folder)).toContain('not a regular file')
    expect(await at.refused('/dev/null')).toContain('not a regular file')
  })

  test('a file of more than a mebibyte', async () => {
    await using at = await config('#'.repeat(1_048_577))
    expect(await at.refused()).toContain('got 1048577 bytes, expected at most 1048576 bytes')
  })

  test('bytes that are not UTF-8', async () => {
    await using at = await config(new Uint8Array([0x61, 0xff, 0xfe]))
    expect(await at.refused()).toContain('got bytes that are not UTF-8')
  })
})

test('a link of one’s own is followed, and the real path is what relative paths go from', async () => {
  await using at = await config()
  await symlink(at.path, `${at.dir}/link.yaml`)
  expect((await readTrusted(`${at.dir}/link.yaml`, [own])).path).toBe(at.path)
})
