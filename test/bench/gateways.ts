// Peers that serve a stdio server over HTTP.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'

export const gateways = ['supergateway', 'mcp-proxy'] as const
export type Gateway = (typeof gateways)[number]

/** One that was started; disposing kills it with its server. */
export interface Serving extends AsyncDisposable {
  readonly child: ChildProcess
  readonly url: URL
}

/** The longest until one answers, ms */
const upMs = 30_000

/** Starts one, which is installed at that path, before a server that Node runs. It takes a while until it listens. */
export async function startGateway(peer: Gateway, program: string, script: string): Promise<Serving> {
  const port = await freePort()
  const args =
    peer === 'supergateway'
      ? [
          '--stdio',
          `${process.execPath} ${script}`,
          '--outputTransport',
          'streamableHttp',
          '--stateful',
          '--port',
          String(port),
          '--logLevel',
          'none',
        ]
      : ['--port', String(port), '--server', 'stream', '--', process.execPath, script]
  const child = spawn(process.execPath, [program, ...args], { stdio: 'ignore', detached: true })
  return {
    child,
    url: new URL(`http://127.0.0.1:${port}/mcp`),
    [Symbol.asyncDispose]: () => ended(child),
  }
}

/** Says `initialize` as soon as it is heard, and resolves with the answer. */
export async function initialized({ url, child }: Serving, hello: string): Promise<void> {
  const began = performance.now()
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  for (;;) {
    try {
      const signal = AbortSignal.timeout(upMs)
      const answer = await fetch(url, { method: 'POST', headers, body: hello, signal })
      const said = await answer.text()
      if (said.includes('"result"')) return
      throw new Error(`it answered ${answer.status}: ${said.slice(0, 200)}`)
    } catch (error) {
      const how =
        child.signalCode === null
          ? `it ended with status ${child.exitCode}`
          : `it was ended by ${child.signalCode}`
      if (hasEnded(child)) throw new Error(how, { cause: error })
      const isRefused = (error as { cause?: { code?: string } }).cause?.code === 'ECONNREFUSED'
      if (!isRefused || performance.now() - began > upMs) throw error
    }
    await setTimeout(2)
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

async function ended(child: ChildProcess): Promise<void> {
  if (hasEnded(child) || child.pid === undefined) return
  const exit = once(child, 'exit')
  process.kill(-child.pid, 'SIGKILL')
  await exit
}
