// What a reload must leave alone: a server that none of them changes, with a session of it that goes on meanwhile.
import { once } from 'node:events'
import type { Client } from '../../src/client/client.ts'
import { Session, shimTo } from './hosts.ts'
import { Missed, type Scene } from './scene.ts'
import { untouched } from './servers.ts'

/**
 * Does what has the configuration read anew, alone with it, and then writes the one that holds otherwise. Breaks `untouched` where the
 * server that none of them changes has another process afterwards, or its session has noticed.
 */
export function undisturbed(
  scene: Scene,
  act: (client: Client, session: Steady) => Promise<string | Missed>,
): Promise<string | Missed> {
  const { stage } = scene
  return stage.config.inTurn(async () => {
    if (stage.pid === null) return new Missed('no daemon')
    await using client = await stage.operator()
    // What signals asked for before is over then: its events would be taken for those of what is done here.
    await client.call('daemon/reload', {})
    await using session = await Steady.begin(scene)
    if (!session.isUp) return new Missed(`no session of ${untouched}: ${session.said}`)
    const before = await livesOf(client, untouched)
    let what: string | Missed
    try {
      what = await act(client, session)
    } finally {
      stage.config.write()
      await client.call('daemon/reload', {})
    }
    const end = await session.call()
    if (end !== 'done')
      stage.account.breaks(
        'untouched',
        `a session of ${untouched} that reloads are not about was told ${end}`,
      )
    const after = await livesOf(client, untouched)
    if (String(after) !== String(before))
      stage.account.breaks('untouched', `${untouched} was ${before.join()}, and is ${after.join()}`)
    return what
  })
}

/** The processes that a server has, each by all that makes it that one. */
export const livesOf = async (client: Client, server: string): Promise<readonly string[]> =>
  (await client.call('servers/get', { server })).instances
    .filter(({ pid }) => pid !== null)
    .map(({ id, pid, started_at: at, restarts }) => `${id} (${pid}) since ${at} after ${restarts} restarts`)
    .toSorted()

/** A session of that server. */
export class Steady implements AsyncDisposable {
  /** `done`, or why there is none */
  readonly said: string
  readonly #scene: Scene
  readonly #child: ReturnType<typeof shimTo>
  readonly #session: Session

  private constructor(scene: Scene, child: ReturnType<typeof shimTo>, session: Session, said: string) {
    this.#scene = scene
    this.#child = child
    this.#session = session
    this.said = said
  }

  static async begin(scene: Scene): Promise<Steady> {
    const { stage, ledger } = scene
    const child = shimTo(untouched, stage)
    const session = new Session(child, stage.account, ledger)
    return new Steady(scene, child, session, await session.introduce(false))
  }

  get isUp(): boolean {
    return this.said === 'done'
  }

  /** How a call in it ends. */
  call(): Promise<string> {
    return this.#session.effect(this.#scene, untouched, 'honest', this.#scene.chance)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode } = this.#child
    if (exitCode !== null || signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}
