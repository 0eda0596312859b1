// The peer query: the kernel's word on who connected, never the peer's own.
import { execFileSync, type SendHandle, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, copyFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { buildInit, ids, isRoot } from '../../support/init-sandbox.ts'
import { tempDir } from '../../support/temp-dir.ts'

const binary = buildInit()

/** What it says of each socket, and that it ends when nobody is there to ask. */
const query = async (...sockets: readonly Socket[]): Promise<readonly unknown[]> => {
  const child = spawn(binary, ['peer'], { env: {}, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const answers: unknown[] = []
  for (const socket of sockets) {
    const answered = once(child, 'message')
    child.send('', Reflect.get(socket, '_handle') as SendHandle)
    answers.push((await answered)[0])
  }
  const exit = once(child, 'exit')
  child.disconnect()
  expect(await exit).toEqual([0, null])
  return answers
}

const accepting = async (at: string | number): Promise<{ socket: Promise<Socket>; close: () => void }> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(at, () => resolve()))
  const socket = once(server, 'connection').then(([accepted]) => accepted as Socket)
  return { socket, close: () => void server.close() }
}

it('says uid, gid and pid of the process that connected, of each socket in its turn', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const { socket, close } = await accepting(path)
  const client = connect(path)
  const accepted = await socket
  const who = `${process.getuid?.()} ${process.getgid?.()} ${process.pid}`
  expect(await query(accepted, accepted)).toEqual([who, who])
  // The socket is still ours to read from.
  client.write('hello')
  expect(String((await once(accepted, 'data'))[0])).toBe('hello')
  client.destroy()
  accepted.destroy()
  close()
})

it('lets a daemon hand on at once what is longer than a socket takes', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const { socket, close } = await accepting(path)
  const client = connect(path).pause()
  const accepted = await socket
  await query(accepted)
  // Beyond the 208 KiB that a kernel gives, within what any user may ask of it
  accepted.write(Buffer.alloc(300 * 1024))
  expect(accepted.writableLength).toBe(0)
  client.destroy()
  accepted.destroy()
  close()
})

it.runIf(isRoot)('says the ids of another user, with the pid of their process', async () => {
  await using folder = await tempDir()
  execFileSync('chmod', ['711', folder.path])
  const path = join(folder.path, 's')
  const { socket, close } = await accepting(path)
  execFileSync('chmod', ['666', path])
  // The shim connects too, and as a copy it runs for users who can't reach the clone.
  const shim = join(folder.path, 'shim')
  await copyFile(binary, shim)
  await chmod(shim, 0o755)
  const client = spawn(shim, ['stdio', 'any', '--socket', path], {
    ...ids,
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const accepted = await socket
  expect(await query(accepted)).toEqual([`${ids.uid} ${ids.gid} ${client.pid}`])
  client.kill()
  accepted.destroy()
  close()
})

it('knows nobody at the other end of what is no unix socket', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const accepted = once(server, 'connection')
  const client = connect(typeof address === 'object' ? (address?.port ?? 0) : 0, '127.0.0.1')
  const [socket] = (await accepted) as [Socket]
  expect(await query(socket)).toEqual(['-'])
  client.destroy()
  socket.destroy()
  server.close()
})

it('fails where there is nobody to hear of', () => {
  expect(() => execFileSync(binary, ['peer'], { stdio: ['ignore', 'ignore', 'pipe'] })).toThrow(/channel/)
})

it('ends with whoever asks it, also while it is stopped', async () => {
  const asking = `const { pid } = require('node:child_process').spawn(${JSON.stringify(binary)}, ['peer'],
    { env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] }); console.log(pid); setInterval(() => {}, 1000)`
  const daemon = spawn(process.execPath, ['-e', asking], { stdio: ['ignore', 'pipe', 'inherit'] })
  const pid = Number(String((await once(daemon.stdout, 'data'))[0]))
  const state = (): string => /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? ''
  // Behind its exec, and with nothing more to do than to wait
  await eventually(
    () => readFileSync(`/proc/${pid}/comm`, 'latin1').startsWith('sallyport-init') && state() === 'S',
  )
  process.kill(pid, 'SIGSTOP')
  await eventually(() => state() === 'T')
  daemon.kill('SIGKILL')
  // A zombie is its reaper's, not ours
  const isGone = eventually(() => !existsSync(`/proc/${pid}`) || state() === 'Z')
  await isGone.catch((error: unknown) => {
    process.kill(pid, 'SIGKILL')
    throw error
  })
})
