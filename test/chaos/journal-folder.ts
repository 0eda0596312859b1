// The folder that the journal is in, as those find it who look after its disk: read-only, moved away, replaced, sealed.
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isRoot } from '../support/user.ts'
import { limit } from './parts.ts'
import { type Fault, Missed, type Scene } from './scene.ts'
import type { Stage } from './stage.ts'

interface Way {
  /** Null where it can be had by whoever runs this */
  readonly needs: string | null
  /** Does it; returns what undoes it */
  readonly begin: (folder: string, stage: Stage) => () => void
}

const away = (folder: string): (() => void) => {
  const elsewhere = `${folder}.away`
  renameSync(folder, elsewhere)
  return () => renameSync(elsewhere, folder)
}

/** Whether files here can be made immutable, which not every file system offers, and to root alone. */
function canSeal(folder: string): boolean {
  const file = join(folder, 'sealed')
  writeFileSync(file, '')
  const isSealed = spawnSync('chattr', ['+i', file], { stdio: 'ignore' }).status === 0
  if (isSealed) execFileSync('chattr', ['-i', file])
  rmSync(file)
  return isSealed
}

const ways: Readonly<Record<string, Way>> = {
  'is read-only': {
    needs: isRoot ? null : 'root',
    begin(folder) {
      execFileSync('mount', ['-o', 'bind,ro', folder, folder])
      // Who reads there at that moment holds up a plain one.
      return () => void execFileSync('umount', ['-l', folder])
    },
  },
  'is moved away': { needs: null, begin: away },
  'has another in its place': {
    needs: null,
    begin(folder) {
      const back = away(folder)
      mkdirSync(folder, { mode: 0o700 })
      return () => {
        rmdirSync(folder)
        back()
      }
    },
  },
  'takes no new file': {
    needs: isRoot ? 'an ordinary user, who root is not' : null,
    begin(folder) {
      chmodSync(folder, 0o500)
      return () => chmodSync(folder, 0o700)
    },
  },
  'takes no longer files': {
    needs: null,
    begin: (_, { pid }) => (pid === null ? () => undefined : limit(pid, 'fsize', 4096)),
  },
}
const sealed: Way = {
  needs: null,
  begin(folder) {
    execFileSync('chattr', ['+i', folder])
    return () => void execFileSync('chattr', ['-i', folder])
  },
}

/** By what they are called. */
export const journalFaults: Readonly<Record<string, Fault>> = {
  'the journal’s folder can’t be written to': {
    weight: 1.5,
    async befall(scene) {
      const { stage, chance } = scene
      if (stage.pid === null) return new Missed('no daemon')
      const had = Object.entries(ways).filter(([, { needs }]) => needs === null)
      if (canSeal(stage.at.stateDir)) had.push(['is immutable', sealed])
      const [how, { begin }] = chance.pick(had)
      const folder = join(stage.at.stateDir, 'journal')
      const ms = chance.between(200, 1500)
      const mend = begin(folder, stage)
      let told: string
      let refused: readonly string[]
      try {
        told = errnoOf(folder)
        refused = await refusalsFor(scene, ms)
      } finally {
        mend()
      }
      const took = told !== '' || refused.length > 0
      const words = `it ${how} for ${ms} ms: ${told === '' ? 'a file can be made there' : told}; ${refused.length} calls were refused`
      return took ? words : new Missed(words)
    },
  },
}

/** What whoever makes a file there is told; empty where nothing hinders it. */
export function errnoOf(folder: string): string {
  const path = join(folder, 'nobody')
  try {
    writeFileSync(path, '')
    rmSync(path)
    return ''
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

/** Calls for so long; returns what those were told that the journal had no room for. */
export async function refusalsFor({ stage, ledger }: Scene, ms: number): Promise<readonly string[]> {
  const host = await stage.at.connect('host').catch(() => null)
  if (host === null) return []
  await using _ = host
  const told: string[] = []
  const end = performance.now() + ms
  do {
    const token = ledger.open('plain', 'honest')
    const made = host.call('tools/call', {
      server: 'plain',
      tool: 'effect',
      arguments: { token, way: 'honest' },
    })
    const said = await ledger.settled(`a call of plain (${token})`, made)
    ledger.close(token, said)
    if (said === 'ERR_JOURNAL') told.push(said)
    await delay(20)
  } while (performance.now() < end)
  return told
}
