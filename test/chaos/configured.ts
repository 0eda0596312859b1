// What becomes of the configuration's file while a daemon runs: another one, a broken one, none, and signals by the dozen.
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../../src/client/client.ts'
import type { SallyportEvent } from '../../src/rpc/protocol.ts'
import { isAlive } from '../support/leaks.ts'
import type { Chance } from './chance.ts'
import { allRuins, type Ruin } from './config-file.ts'
import { Heard, namesOf, reloadMs } from './heard.ts'
import { codeOf } from './ledger.ts'
import { inGoodTime, orLate } from '../support/pace.ts'
import { readerOf, signal } from './parts.ts'
import { again, type Fault, Missed, type Scene } from './scene.ts'
import { extras, type Variation, witnessed } from './servers.ts'
import type { Stage } from './stage.ts'
import { type Steady, undisturbed } from './undisturbed.ts'

/** By what they are called. */
export const configurationFaults: Readonly<Record<string, Fault>> = {
  'the configuration is another one': {
    weight: 1,
    befall: (scene) =>
      undisturbed(scene, (client) => swap(scene, client, variationOf(scene.chance, client.hello.daemon))),
  },
  'the configuration is ruined': {
    weight: 1,
    befall: (scene) =>
      undisturbed(scene, (client, session) => ruin(scene, client, session, scene.chance.pick(allRuins))),
  },
  'SIGHUP comes by the dozen': {
    weight: 1,
    befall: (scene) => undisturbed(scene, (client) => signals(scene, client)),
  },
  'SIGHUP comes as the daemon starts': {
    weight: 0.3,
    isFatal: true,
    befall: ({ stage, chance }) =>
      stage.config.inTurn(async () => {
        await stage.kill()
        const started = stage.start()
        // Before its first lines a process has nothing that hears a signal; once it reads, it has.
        const reader = await readerOf(stage)
        const sent = reader === null ? 0 : await burst(stage, chance)
        const isUp = await started
        if (isUp) await burst(stage, chance)
        const words = `${sent} signals as it reads, and it is ${isUp ? 'up, which gets more' : await again(stage, chance)}`
        return sent === 0 || !isUp ? new Missed(words) : words
      }),
  },
  'the reader of the configuration is killed': {
    weight: 0.5,
    befall: (scene) =>
      undisturbed(scene, (client) =>
        whileRead(scene, client, async (reader) => {
          signal(reader, 'SIGKILL')
          return null
        }),
      ),
  },
  'the reader of the configuration stands still': {
    weight: 0.5,
    befall: (scene) =>
      undisturbed(scene, (client, session) =>
        whileRead(scene, client, async (reader) => {
          signal(reader, 'SIGSTOP')
          await delay(scene.chance.between(50, 1500))
          const end = await session.call()
          signal(reader, 'SIGCONT')
          return end === 'done' ? null : `a call while it stood still was told ${end}`
        }),
      ),
  },
  'the daemon is killed while its configuration is read': {
    weight: 0.5,
    isFatal: true,
    befall: ({ stage, chance }) =>
      stage.config.inTurn(async () => {
        if (stage.pid === null) return new Missed('no daemon')
        signal(stage.pid, 'SIGHUP')
        const reader = await readerOf(stage)
        const stands = chance.percent(50)
        if (reader !== null && stands) signal(reader, 'SIGSTOP')
        await stage.kill()
        const said = await again(stage, chance)
        if (reader === null) return new Missed(`nobody read it; the daemon is ${said}`)
        await inGoodTime(() => !isAlive(reader), 10_000).catch(() =>
          stage.account.breaks('processes', `what read the configuration (${reader}) outlived its daemon`),
        )
        return `${stands ? 'what reads it stood still; ' : ''}${said}`
      }),
  },
}

/** Some servers more, some fewer, some other than they were. */
export function variationOf(chance: Chance, mark: string): Variation {
  const rest = witnessed.filter((name) => name !== 'boxed')
  const pick = (from: readonly string[], most: number): readonly string[] =>
    from.filter(() => chance.percent((100 * most) / from.length)).slice(0, most)
  const removed = pick(rest, 2)
  const changed = pick(
    rest.filter((name) => !removed.includes(name)),
    3,
  )
  return {
    added: [extras[0], ...pick(extras.slice(1), 1)],
    changed,
    removed,
    mark: `${mark}-${chance.next()}`,
  }
}

/**
 * Another configuration, and the word that it is there; `expected` is what is in it. Breaks `configured` where what holds then is
 * another one, where it stopped others than those that it changes, or left one of these.
 */
export async function swap(
  { stage, ledger }: Scene,
  client: Client,
  expected: Variation,
  written = expected,
): Promise<string> {
  const { changed = [], removed = [], added = [] } = expected
  const isWrong = (words: string): void => stage.account.breaks('configured', words)
  const affected = [...changed, ...removed]
  // Whose end is nothing to see where none of them runs.
  await Promise.all(
    affected.slice(0, 2).map((server) => client.call('servers/start', { server }).catch(codeOf)),
  )
  const before = (await Promise.all(affected.map((name) => pidsOf(client, name)))).flat()
  stage.config.write({ variation: written })
  const result = await client.call('daemon/reload', {})
  for (const [what, names] of Object.entries({ added, changed, removed }))
    if (String(result[what as 'added'].toSorted()) !== String(names.toSorted()))
      isWrong(`${what} is said to be ${result[what as 'added'].join()}, and is ${names.join()}`)
  const left = before.filter(isAlive)
  if (left.length > 0) isWrong(`of servers that were changed or taken away these live on: ${left.join()}`)
  const [fresh = ''] = added
  const token = ledger.open(fresh, 'honest')
  const args = { token, way: 'honest' }
  try {
    await inGoodTime(
      () => client.call('tools/call', { server: fresh, tool: 'effect', arguments: args }),
      reloadMs,
    )
    ledger.close(token, 'done')
  } catch (error) {
    isWrong(`${fresh}, which was added, can't be called: ${String((error as Error).cause)}`)
  }
  return `${added.length} added, ${changed.length} changed, ${removed.length} removed, ${before.length} processes ended`
}

const pidsOf = async (client: Client, server: string): Promise<readonly number[]> =>
  (await client.call('servers/get', { server })).instances.flatMap(({ pid }) => pid ?? [])

/** A configuration that no daemon goes over to: the former one holds, and whoever asked, listens or reads the log is told. */
export async function ruin(
  { stage, chance }: Scene,
  client: Client,
  session: Steady,
  how: Ruin | null,
  patienceMs = 5000,
): Promise<string> {
  const isWrong = (words: string): void => stage.account.breaks('configured', `it ${how}: ${words}`)
  const names = await namesOf(client)
  await using heard = await Heard.from(client)
  const said = stage.saidSo(refusedWords)
  if (how !== null) stage.config.ruin(how)
  const isAsked = chance.percent(50)
  const code = isAsked ? await asked(client) : await signalled(stage, heard)
  if (!code.startsWith('ERR_CONFIG')) isWrong(`a reload was told ${code}`)
  if (!(await heard.has('config/refused', patienceMs))) isWrong('no event tells of it')
  if (stage.saidSo(refusedWords) === said) isWrong('the log does not tell of it')
  if (String(await namesOf(client)) !== String(names)) isWrong('there are other servers now')
  const end = await session.call()
  if (end !== 'done') isWrong(`a call was told ${end}`)
  return `it ${how}: ${code} by ${isAsked ? 'a request' : 'a signal'}`
}

const refusedWords = 'configuration refused; the former one holds'

const asked = (client: Client): Promise<string> => client.call('daemon/reload', {}).then(() => 'done', codeOf)

/** The same on a signal's word, as events tell. */
async function signalled(stage: Stage, heard: Heard): Promise<string> {
  if (stage.pid !== null) signal(stage.pid, 'SIGHUP')
  const end = await heard.next()
  return end === null ? 'nothing' : codeIn(end)
}

const codeIn = ({ detail: { code } }: SallyportEvent): string => (typeof code === 'string' ? code : 'done')

/** So many signals, one soon after the other; returns how many. */
async function burst(stage: Stage, chance: Chance): Promise<number> {
  const count = chance.between(5, 40)
  for (let left = count; left > 0; left--) {
    if (stage.pid !== null) signal(stage.pid, 'SIGHUP')
    if (chance.percent(50)) await delay(chance.between(0, 10))
  }
  return count
}

/** Signals in bursts, each with another configuration before it, while reloads run and servers start: the last one holds. */
async function signals(scene: Scene, client: Client): Promise<string | Missed> {
  const { stage, chance } = scene
  await using heard = await Heard.from(client)
  let sent = 0
  const starts: Promise<unknown>[] = []
  const amid: string[] = []
  for (let left = chance.between(2, 4); left > 0; left--) {
    stage.config.write({ variation: variationOf(chance, `signals-${left}`) })
    starts.push(...scene.servers.map((server) => client.call('servers/start', { server }).catch(codeOf)))
    sent += await burst(stage, chance)
    // The next ones come as it is read, or as servers are stopped and started by it.
    if (chance.percent(50)) amid.push((await readerOf(stage)) === null ? 'at any time' : 'as it is read')
    else amid.push((await heard.has('config/applied')) ? 'as servers change' : 'at any time')
  }
  stage.config.write({ variation: { added: [extras[2]] } })
  sent += await burst(stage, chance)
  await Promise.all(starts.map((start) => orLate(start, reloadMs)))
  const isLast = async (): Promise<boolean> => {
    const names = await namesOf(client)
    return names.includes(extras[2]) && !names.includes(extras[0]) && heard.tells(extras[2])
  }
  try {
    await inGoodTime(isLast, reloadMs)
  } catch {
    const names = (await namesOf(client)).join()
    stage.account.breaks(
      'configured',
      `after ${sent} signals, the last of which came last, there are ${names}`,
    )
  }
  const reloads = heard.count('config/applied')
  if (reloads === 0) return new Missed(`${sent} signals, and no reload`)
  return `${sent} signals, ${amid.join(', ')}: ${reloads} reloads, ${heard.count('config/refused')} refused`
}

/** While another configuration is read, as a signal has it: what becomes of who reads. The event tells which configuration holds. */
async function whileRead(
  { stage }: Scene,
  client: Client,
  act: (reader: number) => Promise<string | null>,
): Promise<string | Missed> {
  await using heard = await Heard.from(client)
  stage.config.write({ variation: { added: [extras[1]] } })
  if (stage.pid !== null) signal(stage.pid, 'SIGHUP')
  const reader = await readerOf(stage)
  if (reader === null) return new Missed('nobody read it')
  const wrong = await act(reader)
  if (wrong !== null) stage.account.breaks('configured', wrong)
  const end = await heard.next()
  const holds = (await namesOf(client)).includes(extras[1])
  if (end === null)
    stage.account.breaks('configured', 'no event tells what came of a reload whose reader was held up')
  else if (holds !== (end.type === 'config/applied'))
    stage.account.breaks('configured', `${end.type}, and ${extras[1]} is ${holds ? '' : 'not '}there`)
  return end?.type === 'config/refused' ? `refused: ${codeIn(end)}` : 'applied'
}
