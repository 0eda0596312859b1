// The disks that the daemon's sockets and its temporary files are on, while there is room for nothing more on one of them.
import { setTimeout as delay } from 'node:timers/promises'
import { isRoot } from '../support/user.ts'
import { takeAllRoom } from './disk.ts'
import { errnoOf, refusalsFor } from './journal-folder.ts'
import { again, type Fault, Missed, type Scene } from './scene.ts'

const folders = {
  'the runtime folder': ({ at }: Scene['stage']): string => at.runtimeDir,
  'the temporary folder': ({ scratch }: Scene['stage']): string => scratch,
} as const

type Folder = keyof typeof folders

/** The journal is on another disk: whoever is refused is refused for something else. */
const full = (which: Folder): Fault => ({
  weight: 1,
  async befall(scene) {
    const { stage, chance } = scene
    if (stage.pid === null) return new Missed('no daemon')
    const folder = folders[which](stage)
    const ms = chance.between(200, 1500)
    const mend = takeAllRoom(folder)
    try {
      const told = errnoOf(folder)
      const refused = await refusalsFor(scene, ms)
      if (refused.length > 0)
        stage.account.breaks('answers', `while ${which} was full ${refused.length} calls had no journal`)
      return told === '' ? new Missed('a file can be made there') : `${told} for ${ms} ms`
    } finally {
      mend()
    }
  },
})

/** A daemon that can't come says so and ends; the next one, once there is room, comes. */
const comesAmid = (which: Folder): Fault => ({
  weight: 0.5,
  isFatal: true,
  async befall({ stage, chance }) {
    await stage.end()
    const mend = takeAllRoom(folders[which](stage))
    const isUp = await stage.start({ mayEnd: true })
    await delay(chance.between(0, 300))
    mend()
    return isUp ? 'it came' : `it did not, and was ${await again(stage, chance)}`
  },
})

/** By what they are called; an ordinary user can make no disk. */
export const smallDiskFaults: Readonly<Record<string, Fault>> = isRoot
  ? Object.fromEntries(
      (Object.keys(folders) as Folder[]).flatMap((which) => [
        [`the disk of ${which} is full`, full(which)],
        [`a daemon comes while the disk of ${which} is full`, comesAmid(which)],
      ]),
    )
  : {}
