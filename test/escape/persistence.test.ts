// No server outlives its instance, and no sandbox its daemon, however either ends.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { inGoodTime } from '../support/pace.ts'
import { longestMs } from '../support/patience.ts'
import { elapsed, instants } from '../support/instants.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { ownUid } from '../support/plan.ts'
import { orphanedSandboxes, type Process, processesOf, processesWith } from '../support/processes.ts'

const isRoot = process.getuid?.() === 0
/** Into three launches at once, which take longer than one, ms */
const kills = [...instants(isRoot ? 293 : 27), 22, 24, 26, 28, 32, 36, 40]

/** A process with three launches under way or done, and what can be seen of them from outside. */
const doomedDaemon = () => {
  const script = fileURLToPath(new URL('../support/launch-and-wait.ts', import.meta.url))
  const [marker, uid] = [`marker-${Math.random().toString(36).slice(2)}`, ownUid()]
  const daemon = spawn(process.execPath, [script, marker, String(uid)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // Orphans of somebody else's, which are not this daemon's to answer for.
  const others = new Set(orphanedSandboxes().map(({ pid }) => pid))
  let said = ''
  const launching = Promise.withResolvers<void>()
  daemon.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
    if (said.includes('launching')) launching.resolve()
  })
  daemon.once('exit', () => launching.reject(new Error('it ended before it launched anything')))
  return {
    marker,
    launching: launching.promise,
    hasLaunched: () => said.includes('launched'),
    left: () => [
      ...processesWith(marker),
      ...orphanedSandboxes().filter(({ pid }) => !others.has(pid)),
      ...(isRoot ? processesOf(uid) : []),
    ],
    async [Symbol.asyncDispose]() {
      daemon.kill('SIGKILL')
      if (daemon.exitCode === null && daemon.signalCode === null) await once(daemon, 'exit')
    },
  }
}

/** Fails with the processes, so that whoever waits for none can say which there were. */
const isNothing = (left: readonly Process[]): true => {
  expect(left).toEqual([])
  return true
}

describe('a daemon that is killed', () => {
  test(
    `${kills.length} times, at any instant of ${3 * kills.length} launches, leaves nothing after a second`,
    async () => {
      for (const ms of kills) {
        const daemon = doomedDaemon()
        {
          await using _ = daemon
          await daemon.launching
          await elapsed(ms)
        }
        // Everything but the daemon itself, which has the marker in its own argv until it is reaped.
        await inGoodTime(() => isNothing(daemon.left()), 1_000)
      }
    },
    longestMs,
  )

  test('leaves nothing of servers that run, and that would have stayed', async () => {
    const daemon = doomedDaemon()
    {
      await using _ = daemon
      await eventually(() => daemon.hasLaunched() && daemon.left().length > 6)
    }
    await inGoodTime(() => isNothing(daemon.left()), 1_000)
  })
})

test('a server that forks twice, leaves its session and ignores SIGTERM is gone with its instance', async () => {
  const marker = `marker-${Math.random().toString(36).slice(2)}`
  const script =
    'trap "" TERM HUP; (setsid sh -c "while :; do sleep 600; done" "$0" >/dev/null 2>&1 &); echo up; sleep 600'
  await using host = await launchHost()
  const settings = await settingsFor('probe-exec.mjs', ['/bin/sh', '-c', script, marker])
  const server = await launchProbe(settings, host)
  await once(server.stdout, 'data')
  expect(processesWith(marker).length).toBeGreaterThan(0)
  server.kill()
  expect((await server.ended).reason).toBe('killed')
  expect(processesWith(marker)).toEqual([])
  if (isRoot) expect(processesOf(server.spec.hostUid)).toEqual([])
})
