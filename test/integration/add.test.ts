// `sallyport add` as a person types it: what the command line says is what the server gets.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture } from '../support/daemon.ts'

const fixtures = join(import.meta.dirname, '../fixtures/servers')

test('a server that was added has the mounts of its command line, and runs', async () => {
  await using at = await daemon(configOf({ base: fixture('echo') }))
  await chmod(at.folder, 0o711)
  for (const name of ['documents', 'pictures']) {
    await mkdir(join(at.folder, name))
    await writeFile(join(at.folder, name, 'file'), name)
  }
  const said = 'add mine --command node --server-version 1 --justification tried --profile node'
  const folders = ['documents:/documents', 'pictures:/pictures'].map((folder) => join(at.folder, folder))
  const { status, stderr } = await at.run([
    ...said.split(' '),
    '--package',
    `${fixtures}:/app`,
    '--mount',
    ...folders,
    '--',
    '/app/echo.mjs',
  ])
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringContaining('mine 1 is registered') })
  expect((await at.client.call('servers/get', { server: 'mine' })).mounts).toMatchObject([
    { source: join(at.folder, 'documents'), target: '/documents', access: 'read' },
    { source: join(at.folder, 'pictures'), target: '/pictures', access: 'read' },
  ])
  expect((await at.run(['test', 'mine'])).status).toBe(0)
})
