// The broken arm of chaos: what must never be is brought about on purpose, one thing for each invariant, and a run that does
// not find every one of them proves nothing. What cannot be had here (a mount without root) is not planted.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  appendFileSync,
  constants,
  mkdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { listSegments, segmentPath } from '../../src/journal/segments.ts'
import { eventually } from '../support/eventually.ts'
import { isRoot } from '../support/user.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf } from '../support/witness.ts'
import { ruin, swap } from './configured.ts'
import type { Containers } from './containers.ts'
import { Session } from './hosts.ts'
import { expectNowhere } from './in-flight.ts'
import { Ledger } from './ledger.ts'
import { expectNoLeases } from './rest.ts'
import type { Scene } from './scene.ts'
import { expectGone, expectNoCredentials, holdersBeside, secrets } from './secrets.ts'
import { extras, untouched } from './servers.ts'
import type { Stage } from './stage.ts'
import { undisturbed } from './undisturbed.ts'

/** Where a control group can be made: in the hierarchy of the pids controller, or the only one; null where in none */
export const groups: string | null =
  ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].find((path) => {
    try {
      accessSync(path, constants.W_OK)
      return true
    } catch {
      return false
    }
  }) ?? null

/** What may be waited for until what was planted is gone, which it never is, ms: a run with plants waits in vain for each */
export const inVainMs = 1000

/** Connections that nobody closes while the daemon's descriptors are counted for the last time. Disposing does. */
export async function plantMore(stage: Stage): Promise<AsyncDisposable> {
  const planted = new AsyncDisposableStack()
  for (let more = 0; more < 10; more++) planted.use(await stage.operator())
  return planted
}

/** Memory that the daemon takes when it is next asked how much lives in it, and keeps. */
export function plantMemory({ at }: Stage): void {
  writeFileSync(join(at.folder, 'living.more'), '')
}

/** While the daemon runs: callers without an answer, one that nobody asked for, half a line, a question that is open, and an end that nobody asked for. */
export async function plantTold(stage: Stage): Promise<void> {
  await new Ledger(stage.account, 1).settled('a planted call', new Promise(() => undefined))
  const lines = ['{"id":1,"result":{}}', '{"half', '{}']
  const says = `process.stdout.write(${JSON.stringify(lines.map((line) => `${line}\n`).join(''))})`
  const child = spawn(process.execPath, ['-e', says], { stdio: 'pipe' })
  void new Session(child, stage.account, new Ledger(stage.account))
  await once(child, 'close')
  const client = await stage.operator()
  const call = (server: string, way: string): Promise<unknown> =>
    client
      .call('tools/call', { server, tool: 'effect', arguments: { token: 'token-0-planted', way } })
      .catch(() => undefined)
  {
    await using watch = await watching(client)
    const asked = call('asked', 'honest')
    await watch.next()
    await expectNoLeases(stage, client)
    await asked
  }
  await plantCredential(stage, client.hello.pid)
  const intents = (): number => bodiesOf(stage.at.stateDir, 'call.intent').length
  const before = intents()
  const lost = call('plain', 'silent')
  await eventually(() => intents() > before, 10_000)
  if (stage.pid !== null) process.kill(stage.pid, 'SIGKILL')
  await lost
}

/** A process that has a credential while no call is in flight, and one that was told it in its arguments. */
async function plantCredential(stage: Stage, daemon: number): Promise<void> {
  const child = spawn('sleep', ['600'], { stdio: 'ignore', env: { ...process.env, WORD: secrets.word } })
  await expectNoCredentials(stage.account, stage.api, daemon, inVainMs)
  await expectGone(stage.account, holdersBeside(daemon), inVainMs)
  child.kill('SIGKILL')
  const words = ['-e', 'setInterval(() => undefined, 60_000)', secrets.word]
  const told = spawn(process.execPath, words, { stdio: 'ignore' })
  await once(told, 'spawn')
  expectNowhere({ stage })
  told.kill('SIGKILL')
}

/** Reloads that change whom they must not, come to something else than they say, or take what they must refuse. */
export async function plantReloads(scene: Scene): Promise<void> {
  const { stage } = scene
  await undisturbed(scene, async (client) => {
    stage.config.write({ variation: { changed: [untouched], mark: 'planted' } })
    await client.call('daemon/reload', {})
    return 'it changed'
  })
  await undisturbed(scene, (client) =>
    swap(scene, client, { added: [extras[0]], changed: ['plain'] }, { added: [extras[0]] }),
  )
  await undisturbed(scene, (client, session) => ruin(scene, client, session, null, inVainMs))
}

/** Another daemon that goes on beside the first, in folders of its own. */
export async function plantRival(stage: Stage): Promise<void> {
  const folder = join(stage.at.folder, 'rival')
  mkdirSync(folder, { mode: 0o700 })
  const env = { SALLYPORT_RUNTIME_DIR: join(folder, 'run'), SALLYPORT_STATE_DIR: join(folder, 'state') }
  await stage.contend(async () => undefined, { env, patienceMs: inVainMs })
}

/** Once no daemon runs: something of each kind that is left, and a record that is not the truth. Disposing removes the former. */
export async function plantLeft(
  { at, scratch, seen }: Stage,
  ledger: Ledger,
  { daemon, containers }: { readonly daemon: string; readonly containers: Containers | null },
): Promise<Disposable> {
  const planted = new DisposableStack()
  const child = spawn('sleep', ['600'], { stdio: 'ignore' })
  planted.defer(() => child.kill('SIGKILL'))
  writeFileSync(join(scratch, 'planted'), Buffer.from(secrets.word).toString('base64'))
  const socket = createServer().listen(join(at.runtimeDir, 'planted.sock'))
  planted.defer(() => socket.close())
  await containers?.plant(`sallyport-${daemon}-planted`)
  if (isRoot) {
    const mount = join(at.folder, 'planted')
    mkdirSync(mount)
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', mount])
    planted.defer(() => execFileSync('umount', [mount]))
  }
  if (groups !== null) {
    const group = `${groups}/planted-${daemon}`
    mkdirSync(group)
    planted.defer(() => rmdirSync(group))
  }
  appendFileSync(join(seen.source, 'plain'), 'token-999999-plain\n')
  ledger.close(ledger.open('plain', 'honest'), 'done')
  const [done = ''] = [...ledger.told].find(([, { end, way }]) => end === 'done' && way === 'honest') ?? []
  ledger.close(done, 'ERR_POLICY_DENIED')
  const journal = join(at.stateDir, 'journal')
  const path = segmentPath(journal, listSegments(journal).at(-1) ?? 0)
  writeFileSync(path, readFileSync(path, 'utf8').replace(/"mac":"\w+"}\n$/, `"mac":"${'0'.repeat(64)}"}\n`))
  return planted
}
