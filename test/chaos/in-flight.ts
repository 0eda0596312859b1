// A daemon that is killed while servers hold credentials for calls in flight: where those are from that moment on.
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../src/client/client.ts'
import { inGoodTime } from '../support/pace.ts'
import { guardsBelow, signal } from './parts.ts'
import { again, type Fault, Missed, type Scene } from './scene.ts'
import {
  credentialsHeld,
  expectGone,
  expectNoneInArguments,
  expectUnwritten,
  hear,
  holdersBeside,
} from './secrets.ts'

/** Servers that are given one for a call, each in its own way, and what they do with it for as long as they are let */
const holders = { single: 'silent', secret: 'silent', swapped: 'keeps' } as const

/** By what they are called. */
export const leaseFaults: Readonly<Record<string, Fault>> = {
  'the daemon is killed with credentials in use': {
    weight: 1,
    isFatal: true,
    async befall(scene) {
      const { stage, chance } = scene
      const { pid } = stage
      if (pid === null) return new Missed('no daemon')
      // One that has just come up may be busy.
      const host = await inGoodTime(() => stage.at.connect('host'), 5000).catch(() => null)
      if (host === null) return new Missed('no connection')
      await using _ = host
      const calls = Object.entries(holders).map(([server, way]) => held(scene, host, server, way))
      const seen = await inGoodTime(() => {
        const found = credentialsHeld(stage.api, pid)
        return found.length > 0 && found
      }, 3000).catch(() => [])
      await delay(chance.between(0, 300)) // the others may get theirs
      const guards = chance.percent(50) ? guardsBelow(pid) : []
      for (const guard of guards) signal(guard, 'SIGKILL')
      await stage.kill()
      const left = holdersBeside(null)
      expectNowhere(scene)
      await Promise.all(calls)
      await inGoodTime(() => stage.api.carrying() === 0, 15_000).catch(() =>
        stage.account.breaks('credentials', 'a connection that carried one is open, and its daemon is gone'),
      )
      const said = await again(stage, chance)
      await expectGone(stage.account, left)
      if (seen.length === 0) return new Missed(`nobody was seen to have one; the daemon is ${said}`)
      return `${seen.join(', ')}; ${guards.length > 0 ? 'the guard, too; ' : ''}${said}`
    },
  },
}

/** At the moment of the kill no file tells one, nor any argument of what lives. */
export function expectNowhere({ stage: { account, at, scratch } }: Pick<Scene, 'stage'>): void {
  expectUnwritten(account, [at.runtimeDir, at.stateDir, scratch])
  expectNoneInArguments(account)
}

async function held({ stage, ledger }: Scene, host: Client, server: string, way: string): Promise<void> {
  const token = ledger.open(server, way)
  const args = { token, way }
  const made = host
    .call('tools/call', { server, tool: 'effect', arguments: args })
    .then((result) => hear(stage.account, `a caller of ${server}`, JSON.stringify(result)))
  ledger.close(token, await ledger.settled(`${way} of ${server} (${token})`, made))
}
