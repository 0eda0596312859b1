// Variables that name folders which are not there, or which whoever runs us may not write to.
import { lstat, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configOf, fixture, place, serve } from '../support/daemon.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot } from '../support/user.ts'

const nowhere = '/nonexistent/folder'
const mend = (variable: string) => `set ${variable} to a folder that is there and that this user can write to`

describe('a home, or a temporary folder, that is not there', () => {
  test.each(['HOME', 'TMPDIR'])('%s is named by a verification, which passes nothing', async (variable) => {
    await using at = await place()
    const env = { [variable]: nowhere }
    const { status, stdout } = await at.run(['verify', '--profile', 'offline', '--format', 'json'], { env })
    expect(status).toBe(4)
    expect(stdout).toContain(`ERR_USAGE: ${nowhere}: no such file`)
    expect(stdout).toContain(mend(variable))
    expect(stdout).not.toContain('ERR_INTERNAL')
  })

  test('is named as a profile is learned', async () => {
    await using at = await place()
    const { status, stderr } = await at.run(['profile', 'learn', '--', 'true'], { env: { TMPDIR: nowhere } })
    expect({ status, stderr }).toEqual({ status: 7, stderr: expect.stringContaining(mend('TMPDIR')) })
  })

  test.each([
    ['that is not there', (_folder: string) => nowhere, 'ENOENT'],
    ['whose path is too long for a socket', (folder: string) => join(folder, 'd'.repeat(80)), 'ENAMETOOLONG'],
  ])('a temporary folder %s costs a daemon the way out alone, by name', async (_, named, errno) => {
    await using deep = await tempDir()
    await using at = await place(configOf({ echo: fixture('echo') }))
    await mkdir(join(deep.path, 'd'.repeat(80)))
    const env = { TMPDIR: named(deep.path) }
    const { client } = await serve(at, env)
    await using host = client
    expect(await host.call('servers/test', { server: 'echo' })).toMatchObject({ ok: true })
    const { stdout, status } = await at.run(['doctor', '--json'], { env })
    expect(status).toBe(0)
    expect(stdout).toMatch(new RegExp(String.raw`temporary folder \S+ takes no socket \((${errno})\)`))
    expect(stdout).toContain('set TMPDIR to a folder with a short path')
  })
})

describe.runIf(isRoot)('folders of sockets and records behind a link of root’s', () => {
  test('are served, and reached by either name', async () => {
    await using at = await place(configOf({ echo: fixture('echo') }))
    await mkdir(join(at.folder, 'var'))
    await symlink('var', join(at.folder, 'link'))
    const behind = (folder: string) => ({
      SALLYPORT_RUNTIME_DIR: join(at.folder, folder, 'run'),
      SALLYPORT_STATE_DIR: join(at.folder, folder, 'state'),
    })
    expect(await at.run(['serve', '--background'], { env: behind('link') })).toMatchObject({ status: 0 })
    for (const folder of ['link', 'var']) {
      const call = ['call', 'echo', 'echo', '-a', 'text=hello']
      expect(await at.run(call, { env: behind(folder) })).toMatchObject({
        stdout: '{"text":"hello"}\n',
        stderr: '',
      })
    }
    expect((await lstat(join(at.folder, 'var/state/journal'))).isDirectory()).toBe(true)
  })
})
