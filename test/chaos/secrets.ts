// The credentials of a run, and where none may be: with a host, in what is written down, and anywhere once its call is over.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { descendantsOf } from '../support/leaks.ts'
import type { Account } from './account.ts'
import type { Api } from './api.ts'
import { inGoodTime } from '../support/pace.ts'

/** What the sources hold: the daemon's environment, and a file */
export const secrets = { key: 'chaos-secret-0123456789abcdef', word: 'chaos-word-fedcba9876543210' } as const

/** Where a sandbox has the files of its call. */
const files = '/sallyport/credentials'

const forms = Object.values(secrets).flatMap((value) => [
  value,
  Buffer.from(value).toString('base64'),
  Buffer.from(value).toString('hex'),
])

/** Whether it tells a secret, as it is or encoded. */
export const isTelling = (bytes: Buffer | string): boolean => forms.some((form) => bytes.includes(form))

/** Breaks `secrets` where a host is told one. */
export function hear(account: Account, who: string, said: string): void {
  if (isTelling(said)) account.breaks('secrets', `${who} was told a secret: ${said.slice(0, 200)}`)
}

/** Breaks `secrets` for each file below the folders that tells one. */
export function expectUnwritten(account: Account, folders: readonly string[]): void {
  const paths = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  for (const path of paths) if (isToldBy(path)) account.breaks('secrets', `${path} tells a secret`)
}

function isToldBy(path: string): boolean {
  try {
    return statSync(path).isFile() && isTelling(readFileSync(path))
  } catch {
    return false // it is gone, or nothing that can be read
  }
}

/** Breaks `credentials` where one is anywhere beside the daemon; to be called while no call is in flight. */
export async function expectNoCredentials(
  account: Account,
  api: Api,
  daemon: number | null,
  patienceMs = 15_000,
): Promise<void> {
  try {
    await inGoodTime(() => credentialsHeld(api, daemon).length === 0, patienceMs)
  } catch {
    account.breaks('credentials', credentialsHeld(api, daemon).join('; '))
  }
}

/** Where one is, beside the daemon: processes that have it, and connections that carried it. */
export const credentialsHeld = (api: Api, daemon: number | null): readonly string[] => [
  ...holdersBeside(daemon).map(({ words }) => words),
  ...(api.carrying() === 0 ? [] : [`${api.carrying()} connections that carried one are open`]),
]

/** A process that has one, and in words where. */
interface Holder {
  readonly pid: number
  readonly words: string
}

export const holdersBeside = (daemon: number | null): readonly Holder[] =>
  descendantsOf(process.ppid)
    .filter(({ pid }) => pid !== process.pid && pid !== daemon)
    .flatMap(({ pid, name }) => heldBy(pid).map((what) => ({ pid, words: `${name} (${pid}) has ${what}` })))

/** Breaks `credentials` where any of those that had one when their daemon was killed has it still, whatever others have by now. */
export async function expectGone(
  account: Account,
  holders: readonly Holder[],
  patienceMs = 15_000,
): Promise<void> {
  const left = (): readonly Holder[] => holders.filter(({ pid }) => heldBy(pid).length > 0)
  try {
    await inGoodTime(() => left().length === 0, patienceMs)
  } catch {
    const words = left().map((holder) => holder.words)
    account.breaks('credentials', `their daemon was killed, and these live on: ${words.join('; ')}`)
  }
}

/** Breaks `credentials` for each process that was told one in its arguments, which everybody may read: none is at any time. */
export function expectNoneInArguments(account: Account): void {
  for (const { pid, name } of descendantsOf(process.ppid))
    if (read(() => (isTelling(readFileSync(`/proc/${pid}/cmdline`)) ? ['one'] : [])).length > 0)
      account.breaks('credentials', `${name} has one in its arguments`)
}

/** Where a process of a sandbox has one: what its user may not look at is as if it were not there. */
function heldBy(pid: number): readonly string[] {
  const inMind = read(() =>
    isTelling(readFileSync(`/proc/${pid}/environ`)) ? ['one in its environment'] : [],
  )
  const inFiles = read(() => readdirSync(`/proc/${pid}/root${files}`))
  return [...inMind, ...inFiles.map((name) => `the file ${name}`)]
}

function read(look: () => readonly string[]): readonly string[] {
  try {
    return look()
  } catch {
    return [] // it has ended, or there is no such folder
  }
}
