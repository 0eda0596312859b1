// A daemon that stands still while more come than its socket holds: whoever comes next waits, and is served once it goes on.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { eventually } from './eventually.ts'
import { stateOf } from './processes.ts'

/** Takes whoever comes, and ends each session at once. */
const script = `
  const answer = (result) => JSON.stringify({ jsonrpc: '2.0', id: 1, result }) + '\\n'
  require('node:net')
    .createServer((socket) => {
      socket.on('error', () => undefined).on('data', (said) =>
        socket.end(answer(String(said).includes('session/attach') ? { session: 's-1' } : { status: 0 })))
    })
    .listen({ path: process.argv[1], backlog: 1 }, () => console.log('listening'))`

export interface FullBacklog extends AsyncDisposable {
  /** Serves those who wait */
  goOn(): void
}

/** Listens on that path, and takes nobody until it goes on. */
export async function fullBacklog(path: string): Promise<FullBacklog> {
  const child = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.kill('SIGSTOP')
  await eventually(() => stateOf(child.pid ?? 0) === 'T')
  const waiting: Socket[] = []
  for (let isFull = false; !isFull;) {
    const socket = connect(path)
    waiting.push(socket)
    isFull = await new Promise<boolean>((resolve) =>
      socket.once('connect', () => resolve(false)).on('error', () => resolve(true)),
    )
  }
  return {
    goOn: () => void child.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      for (const socket of waiting) socket.destroy()
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}
