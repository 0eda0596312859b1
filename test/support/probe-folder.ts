// Runs once around all tests: the folder of the compiled probes, which every user can read, and which goes away. In it is
// what V8 made of our sources for those that started before, apart for each user that tests start Node as.
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/lib/logger.ts'
import { pinFileKept } from '../../src/sandbox/program/known-programs.ts'
import { isRoot, ordinaryUid } from './user.ts'

/** Variable by which the tests, and what they start, find the folder. */
export const probeFolderVariable = 'SALLYPORT_TEST_PROBES'

/** Where a test under vitest finds a folder of its run, or undefined where there is no such run. */
const within = (name: string): string | undefined => {
  const folder = process.env[probeFolderVariable]
  return folder === undefined ? undefined : join(folder, name)
}

/** Mount point for the clone, as the ordinary user's scripts see it: always the same, since compiled code is kept by path. */
export const clonePlace = (): string | undefined => within('clone')

/** Environment of a Node that is our own user's: with the compiled code of those before, under vitest. */
export const ownCode = (): Readonly<Record<string, string>> => codeIn(process.env['NODE_COMPILE_CACHE'])

/** The same for a Node of the ordinary user, who may not write where our own reads code. */
export const ordinaryCode = (): Readonly<Record<string, string>> =>
  codeIn(isRoot ? within('ordinary-code') : undefined)

const codeIn = (folder: string | undefined): Readonly<Record<string, string>> =>
  folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }

/** Where launches of the tests' own process keep what long programs were found to be. */
export const knownPrograms = (): string | undefined => within('programs.json')

/** What the runtime of the tests' servers was found to be, for every user: a daemon of each test would read all of it. */
export const knownRuntime = (): string | undefined => within('runtime.json')

export async function setup(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-probes-'))
  chmodSync(folder, 0o755)
  process.env[probeFolderVariable] = folder
  mkdirSync(join(folder, 'clone'))
  const own = join(folder, 'code')
  mkdirSync(own, { mode: 0o700 })
  process.env['NODE_COMPILE_CACHE'] = own
  await keepRuntime(join(folder, 'programs.json'), join(folder, 'runtime.json'))
  if (!isRoot) return
  const ordinary = join(folder, 'ordinary-code')
  mkdirSync(ordinary, { mode: 0o700 })
  chownSync(ordinary, ordinaryUid, ordinaryUid)
}

/** As a daemon keeps it; one that was installed seconds ago is not kept, and then every daemon reads it. */
async function keepRuntime(own: string, forAll: string): Promise<void> {
  const node = realpathSync(process.execPath)
  await pinFileKept(own, silent)(node, () => new Error(`${node} changed while it was read`))
  if (!existsSync(own)) return
  copyFileSync(own, forAll)
  chmodSync(forAll, 0o644) // some daemons are an ordinary user's
}

export async function teardown(): Promise<void> {
  const folder = process.env[probeFolderVariable]
  // Who ran tests is ending, and writes down what V8 made of the code as it does: a folder is not empty then when its turn comes.
  if (folder !== undefined) await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}
