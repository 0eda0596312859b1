// Servers that run beside each other, each with its own folder and its own way out: what one was granted is nothing to the other.
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openApi } from '../support/api.ts'
import { endServe, serve } from '../support/daemon.ts'
import { callThrough, reachesOut, reachingPlace } from '../support/reaching-out.ts'
import { tempDir } from '../support/temp-dir.ts'

test('two servers that run at once have each its own folder and its own way out, and nothing of the other’s', async () => {
  await using api = await openApi()
  await using folder = await tempDir()
  await chmod(folder.path, 0o755)
  const names = ['one', 'two'] as const
  const portOf = { one: api.plainPort, two: api.port }
  for (const name of names) {
    await mkdir(join(folder.path, name))
    await writeFile(join(folder.path, name, 'word'), `for ${name}`)
  }
  const way = (port: number) => ({
    host: api.host,
    port,
    address: api.address,
    private: true,
    reason: 'a test',
  })
  const mount = (name: string) => ({
    source: join(folder.path, name),
    target: `/${name}`,
    access: 'read',
    reason: 'a test',
  })
  const servers = Object.fromEntries(
    names.map((name) => [name, reachesOut([way(portOf[name])], { mounts: [mount(name)] })]),
  )
  await using at = await reachingPlace(servers, { allow: Object.values(portOf).map(way) })
  const running = await serve(at)
  const call = callThrough(() => running.client)
  const tried = async (server: string, of: (typeof names)[number]) => ({
    server,
    of,
    text: (await call(server, 'read', { path: `/${of}/word` }))['text'],
    isReached: (await call(server, 'dial', { host: api.host, port: portOf[of] }))['connected'] === true,
  })
  try {
    const pairs = names.flatMap((server) => names.map((of) => tried(server, of)))
    expect(await Promise.all(pairs)).toEqual([
      { server: 'one', of: 'one', text: 'for one', isReached: true },
      { server: 'one', of: 'two', text: '', isReached: false },
      { server: 'two', of: 'one', text: '', isReached: false },
      { server: 'two', of: 'two', text: 'for two', isReached: true },
    ])
  } finally {
    await endServe(running)
  }
})
