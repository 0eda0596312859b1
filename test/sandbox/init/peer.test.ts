// The peer query: the kernel's word on who connected, never the peer's own.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { chmod, copyFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { buildInit, ids, isRoot } from '../../support/init-sandbox.ts'
import { tempDir } from '../../support/temp-dir.ts'

const binary = buildInit()

const query = (...fds: readonly number[]): string =>
  execFileSync(binary, ['peer'], { env: {}, stdio: ['ignore', 'pipe', 'ignore', ...fds], encoding: 'utf8' })

const numberOf = (socket: Socket): number => {
  const handle: unknown = Reflect.get(socket, '_handle')
  return typeof handle === 'object' && handle !== null ? Number(Reflect.get(handle, 'fd')) : -1
}

it('prints uid, gid and pid of the process that connected', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const accepted = once(server, 'connection')
  const client = connect(path)
  const [socket] = await accepted
  expect(query(numberOf(socket as Socket))).toBe(
    `${process.getuid?.()} ${process.getgid?.()} ${process.pid}\n`,
  )
  client.destroy()
  ;(socket as Socket).destroy()
  server.close()
})

it.runIf(isRoot)('prints the ids of another user, with the pid of their process', async () => {
  await using folder = await tempDir()
  execFileSync('chmod', ['711', folder.path])
  const path = join(folder.path, 's')
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(path, resolve))
  execFileSync('chmod', ['666', path])
  const accepted = once(server, 'connection')
  // The shim connects too, and as a copy it runs for users who can't reach the clone.
  const shim = join(folder.path, 'shim')
  await copyFile(binary, shim)
  await chmod(shim, 0o755)
  const client = spawn(shim, ['stdio', 'any', '--socket', path], {
    ...ids,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const [socket] = await accepted
  expect(query(numberOf(socket as Socket))).toBe(`${ids.uid} ${ids.gid} ${client.pid}\n`)
  client.kill()
  ;(socket as Socket).destroy()
  server.close()
})

it('answers for each of several sockets, and knows nobody where one is none', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const accepted = once(server, 'connection')
  const client = connect(path)
  const [socket] = await accepted
  const file = openSync('/dev/null', 'r')
  const who = `${process.getuid?.()} ${process.getgid?.()} ${process.pid}\n`
  const fd = numberOf(socket as Socket)
  expect(query(fd, file, fd)).toBe(`${who}-\n${who}`)
  closeSync(file)
  client.destroy()
  ;(socket as Socket).destroy()
  server.close()
})

it('fails where there is nothing to ask about', () => {
  expect(() => query()).toThrow()
})
