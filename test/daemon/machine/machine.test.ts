// A launch on this machine, with what changes on it meanwhile.
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { thisHost } from '../../../src/config/host.ts'
import { createMachine } from '../../../src/daemon/machine/machine.ts'
import type { Outfit } from '../../../src/daemon/machine/outfit.ts'
import { newDaemonId, newInstanceId } from '../../../src/lib/ids.ts'
import { silent } from '../../../src/lib/logger.ts'
import { type LaunchSupply, noSupply } from '../../../src/sandbox/launch.ts'
import type { Running } from '../../../src/supervisor/ports.ts'
import { settingsFor } from '../../support/launch.ts'
import { textOf } from '../../support/plan.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { patienceMs } from '../../support/patience.ts'

/** What a server sees in a folder which another takes the place of so often, each time when it was judged and is not mounted. */
async function launchWhileReplaced(times: number): Promise<readonly string[]> {
  await using dir = await tempDir()
  const [source, state] = [join(dir.path, 'granted'), join(dir.path, 'state')]
  mkdirSync(state, { mode: 0o700 })
  let folders = 0
  const replace = (): void => {
    if (folders > 0) renameSync(source, `${source}.${folders}`)
    folders += 1
    mkdirSync(join(source, `folder-${folders}`), { recursive: true })
  }
  replace()
  const supply = (left: number): LaunchSupply => ({
    ...noSupply,
    // Asked for once what is mounted was judged, and before any of it is.
    get files() {
      if (left > 0) replace()
      return []
    },
  })
  let left = times
  const supplied: Pick<Outfit, 'redactor' | 'supplyAgain'> = {
    redactor: null,
    supplyAgain: () => Promise.resolve(supply(--left)),
  }
  const outfit = supplied as Outfit
  const settings = await settingsFor('looks.mjs', [JSON.stringify({ paths: ['/granted'] })], {
    profile: 'workspace-read',
    mounts: [{ source, target: '/granted', reason: 'a test' }],
  })
  const server = settings.servers.get('probe')
  if (server === undefined) throw new Error('the settings have no server named probe')
  await using machine = await createMachine({
    settings,
    daemon: newDaemonId(),
    host: thisHost(),
    runtimeDir: join(dir.path, 'runtime'),
    stateDir: state,
    guard: { cleanUp: () => undefined, [Symbol.asyncDispose]: () => Promise.resolve() } as never,
    outfits: {
      forLaunch: () => Promise.resolve({ outfit, supply: supply(left), warm: null }),
      dispose: () => Promise.resolve(),
      forCallToCome: () => outfit,
      drawFrom: () => undefined,
    },
    confided: { stream: () => null as never },
    emit: () => undefined,
    isHeld: () => false,
    recordImage: () => Promise.resolve(),
    log: silent,
  })
  const waiting = { signal: AbortSignal.timeout(patienceMs), registered: () => undefined, principal: '0' }
  await using running: Running = await machine.launch(server, newInstanceId(), waiting)
  running.stdin.end()
  const seen = JSON.parse(await textOf(running.stdout)) as {
    readonly paths: Readonly<Record<string, { readonly holds: readonly string[] }>>
  }
  return seen.paths['/granted']?.holds ?? []
}

test('a folder that another takes the place of, when it was judged and is not mounted, is judged anew', async () => {
  expect(await launchWhileReplaced(1)).toEqual(['folder-2'])
})

test('once, and no more', async () => {
  await expect(launchWhileReplaced(2)).rejects.toMatchObject({
    code: 'ERR_SANDBOX_SETUP',
    details: { step: 'gate', target: '/granted' },
  })
})
