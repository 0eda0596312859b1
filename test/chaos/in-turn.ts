// Several seeds, one run after the other, and at the end how each of them went.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { isRoot } from '../support/user.ts'
import { type Finding, findings } from './seeds.ts'
import { statusUnproven } from './unproven.ts'

/** How one run went: its exit status, and what its last lines say was broken. */
interface Went {
  readonly seed: string
  readonly status: number
  readonly broken: readonly string[]
}

const statusBrokenOff = 130

/**
 * Which seeds are meant: `known` are those that once failed for whoever runs this, anything else is a list of them, with
 * commas. Throws where that names none.
 */
export function seedsOf(said: string, known: readonly Finding[] = findings): readonly string[] {
  const mine = known.filter(({ as }) => as === 'either' || (as === 'root') === isRoot)
  const seeds =
    said === 'known'
      ? mine.flatMap(({ seed }) => (seed === null ? [] : [String(seed)]))
      : said.split(',').map((seed) => seed.trim())
  if (seeds.length === 0 || seeds.includes(''))
    throw new Error(`--seeds ${said}: expected known, or seeds with commas between, such as 7,105`)
  return [...new Set(seeds)]
}

/**
 * Runs `argv` with `--seed` and each of them, showing what it prints, and then a line for each. Status 1 where any broke an
 * invariant, 2 where one proved nothing and none failed, 130 where it was broken off.
 */
export async function inTurn(
  seeds: readonly string[],
  argv: readonly string[],
  { signal }: { readonly signal: AbortSignal },
): Promise<number> {
  const all: Went[] = []
  for (const seed of seeds) {
    all.push(await go(seed, argv, signal))
    if (signal.aborted) return statusBrokenOff
  }
  for (const went of all) process.stdout.write(`seed ${went.seed}: ${wordsOf(went)}\n`)
  if (all.some(({ status }) => status !== 0 && status !== statusUnproven)) return 1
  return all.some(({ status }) => status === statusUnproven) ? statusUnproven : 0
}

async function go(
  seed: string,
  [program = '', ...args]: readonly string[],
  signal: AbortSignal,
): Promise<Went> {
  const run = spawn(program, [...args, '--seed', seed], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(run, 'exit') as Promise<[number | null]>
  const breakOff = (): void => void run.kill('SIGTERM')
  signal.addEventListener('abort', breakOff, { once: true })
  const broken: string[] = []
  for await (const line of createInterface({ input: run.stdout })) {
    process.stdout.write(`${line}\n`)
    const [, invariant] = /^BROKEN (\w+):/.exec(line) ?? []
    if (invariant !== undefined) broken.push(invariant)
  }
  const [status] = await exited
  signal.removeEventListener('abort', breakOff)
  return { seed, status: status ?? 1, broken }
}

function wordsOf({ status, broken }: Went): string {
  if (status === 0) return 'held'
  if (status === statusUnproven) return 'nothing is proven'
  return broken.length > 0 ? `broke ${broken.join(', ')}` : `failed with status ${status}`
}
