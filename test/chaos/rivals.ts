// The guard that holds a daemon's locks, killed at the moment at which another daemon comes for them.
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import type { Chance } from './chance.ts'
import { guardsBelow, signal } from './parts.ts'
import { again, type Fault, Missed } from './scene.ts'
import type { Stage } from './stage.ts'

/** By what they are called. */
export const rivalFaults: Readonly<Record<string, Fault>> = {
  'the guard is killed as another daemon starts': {
    weight: 0.5,
    isFatal: true,
    async befall({ stage, chance }) {
      const [guard] = guardsOf(stage)
      if (guard === undefined) return new Missed('no guard')
      let when = ''
      const who = await stage.contend(async (first, other) => {
        // One that stands still has no other guard at once, and the locks are anybody's.
        const stands = chance.percent(50)
        if (stands) signal(first, 'SIGSTOP')
        if (stands) signal(guard, 'SIGKILL')
        when = await someMoment(other, chance)
        if (!stands) signal(guard, 'SIGKILL')
        if (!stands) return
        const ms = chance.between(0, 3000)
        await delay(ms)
        signal(first, 'SIGCONT')
        when = `while its daemon stood still, which it did until ${when}, and ${ms} ms`
      })
      return who === 'neither' ? again(stage, chance) : `killed ${when}: ${who} goes on`
    },
  },
  'the guard is killed as its daemon comes again': {
    weight: 0.5,
    isFatal: true,
    async befall({ stage, chance }) {
      const [guard] = guardsOf(stage)
      if (guard === undefined) return new Missed('no guard')
      await stage.kill()
      const started = stage.start({ mayEnd: true })
      const { pid } = stage
      const whose = chance.pick(['the former one', 'the new one'] as const)
      const when = await someMoment(pid ?? 0, chance)
      for (const one of whose === 'the former one' ? [guard] : guardsOf(stage)) signal(one, 'SIGKILL')
      const isUp = await started
      return `${whose}, ${when}: ${isUp ? 'up' : `not up, and ${await again(stage, chance)}`}`
    },
  },
}

const guardsOf = ({ pid }: Stage): readonly number[] => (pid === null ? [] : guardsBelow(pid))

/** Waits until a daemon that starts asks for the locks, or for no reason at all; in words. */
async function someMoment(daemon: number, chance: Chance): Promise<string> {
  if (chance.percent(50)) {
    const ms = chance.between(0, 1500)
    await delay(ms)
    return `after ${ms} ms`
  }
  await eventually(() => guardsBelow(daemon).length > 0, 10_000).catch(() => undefined)
  return 'as it asks for the locks'
}
