// A launch without walls: real processes behind the same interface, for tests of what is not the sandbox.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { SallyportError } from '../../src/errors.ts'
import type { SandboxExit } from '../../src/sandbox/driver.ts'
import type { SandboxSpec } from '../../src/sandbox/spec.ts'
import type { Launch, Running, WarmPools } from '../../src/supervisor/ports.ts'

/** Absolute path of a fixture server. */
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/servers/${name}`, import.meta.url))

/** What a test that was cut short would leave behind: nothing else ends a process group of its own. */
const living = new Set<() => void>()
process.once('exit', () => living.forEach((kill) => kill()))
process.once('SIGTERM', () => process.exit(143))

/** Every process is started when it is needed. */
export const noPools: WarmPools = {
  prepare: () => undefined,
  drain: () => Promise.resolve(),
  view: () => null,
}

/** Starts `server.command` with `server.args` in a process group of its own, which ends with its leader. */
export const plainLaunch: Launch = async (server, instance, { signal, registered }) => {
  signal.throwIfAborted()
  registered()
  const child = spawn(server.command, server.args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  await once(child, 'spawn').catch((error: unknown) => Promise.reject(asError(server.name, error)))
  const killGroup = (name: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name)
    } catch {
      // gone already
    }
  }
  const kill = (): void => killGroup('SIGKILL')
  living.add(kill)
  const ended = once(child, 'exit').then(([code, name]: unknown[]): SandboxExit => {
    kill()
    living.delete(kill)
    const number = name === null ? null : constants.signals[name as NodeJS.Signals]
    return { code: code as number | null, signal: number, reason: name === 'SIGKILL' ? 'killed' : 'exited' }
  })
  const launched: Running = {
    spec: { server: server.name, instance, limits: {} } as unknown as SandboxSpec,
    enforcedBy: { memory: 'none', pids: 'none', cpu: 'none', files: 'none', tmp: 'none' },
    redactor: null,
    discreet: null,
    initPid: child.pid ?? 0,
    orphans: () => null,
    stdin: child.stdin,
    stdout: child.stdout,
    stderr: child.stderr,
    terminate: () => void child.kill('SIGTERM'),
    kill,
    abandon: () => void child.stdin.end(),
    ending: () => null,
    isPaused: () => false,
    ended,
    [Symbol.asyncDispose]: async () => {
      kill()
      await ended
    },
  }
  return launched
}

const asError = (server: string, error: unknown): SallyportError =>
  new SallyportError(
    'ERR_SANDBOX_EXEC',
    `${server}: ${error instanceof Error ? error.message : String(error)}`,
  )
