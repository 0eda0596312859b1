// Asking who connected: the cost of a storm of connections, and that no answer goes to the wrong one.
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { PeerQuery } from '../../src/rpc/peer.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { childrenOf } from '../support/leaks.ts'
import { withoutDescriptors } from '../support/no-descriptors.ts'
import { tempDir } from '../support/temp-dir.ts'

const helpers = (): readonly number[] =>
  childrenOf(process.pid)
    .filter(({ name }) => name === 'sallyport-init')
    .map(({ pid }) => pid)

it('asks about a storm of connections with one child, and with another when that one is gone, be it over the question', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const counting = join(folder.path, 'counting')
  await writeFile(counting, `#!/bin/sh\necho >>${path}.count\nexec '${await findInitBinary()}' "$@"\n`, {
    mode: 0o755,
  })
  const server = createServer({ pauseOnConnect: true }).listen(path)
  await once(server, 'listening')
  const accepted: Socket[] = []
  server.on('connection', (socket) => accepted.push(socket))
  const clients = Array.from({ length: 100 }, () => connect(path))
  while (accepted.length < clients.length) await once(server, 'connection')
  const others = helpers() // of the files before in this process
  using peers = new PeerQuery(counting)
  accepted[7]?.destroy()
  const answers = await Promise.allSettled(accepted.map((socket) => peers.ask(socket)))
  const ours = { uid: process.getuid?.(), gid: process.getgid?.(), pid: process.pid }
  for (const [index, answer] of answers.entries())
    expect(answer).toMatchObject(index === 7 ? { status: 'rejected' } : { status: 'fulfilled', value: ours })
  expect(await readFile(`${path}.count`, 'utf8')).toBe('\n')
  const own = (): number => helpers().find((pid) => !others.includes(pid)) ?? Number.NaN
  process.kill(own(), 'SIGKILL')
  const [socket] = accepted
  // Whether the end is seen before the question or after it.
  if (socket !== undefined) expect(await peers.ask(socket)).toEqual(ours)
  expect(await readFile(`${path}.count`, 'utf8')).toBe('\n\n')
  const second = own()
  process.kill(second, 'SIGSTOP')
  const asked = socket === undefined ? null : peers.ask(socket)
  process.kill(second, 'SIGKILL')
  expect(await asked).toEqual(ours)
  expect(await readFile(`${path}.count`, 'utf8')).toBe('\n\n\n')
  for (const socket of [...clients, ...accepted]) socket.destroy()
  server.close()
})

it('refuses by name whom no child can be asked about', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const server = createServer({ pauseOnConnect: true }).listen(path)
  await once(server, 'listening')
  const client = connect(path)
  const [socket] = (await once(server, 'connection')) as [Socket]
  using peers = new PeerQuery(join(folder.path, 'none'))
  await expect(peers.ask(socket)).rejects.toMatchObject({
    code: 'ERR_NOT_AUTHORISED',
    message: expect.stringContaining('ENOENT') as string,
  })
  for (const end of [client, socket]) end.destroy()
  server.close()
})

it('refuses as a shortage where no descriptor is left for a child, and ends neither itself nor its process group', async () => {
  const said = await withoutDescriptors('peer', await findInitBinary())
  expect(said).toMatch(/are not known: spawn .* EMFILE; stop what uses up descriptors/)
  expect(said).toContain('"code":"ERR_SHORTAGE"')
})
