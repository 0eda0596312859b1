// Reloads under load: twenty sessions of both eras go on as if nothing were, whichever ids and tokens they share.
import { connect } from 'node:net'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture, type Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { handled } from '../support/handled.ts'
import { speaker } from '../support/speaker.ts'

type Line = Readonly<Record<'id' | 'method' | 'params' | 'result' | 'error', unknown>>

const waitedIn = ({ result }: Line): unknown =>
  (result as { structuredContent?: { waited?: number } } | undefined)?.structuredContent?.waited

/** One session whose ids and progress tokens are those of every other one; what it hears beside is kept. */
class Host implements Disposable {
  readonly strange: string[] = []
  readonly done: number[] = []
  isClosed = false
  readonly #socket
  readonly #waiting = new Map<number, (line: Line) => void>()
  /** What an answer of a call taken back may be, where both were on their way: this host's, once */
  readonly #takenBack = new Set<number>()
  #ms = 0
  #token = ''
  #steps = 0
  #id = 0

  constructor(at: Place) {
    this.#socket = connect(join(at.runtimeDir, 'host/host.sock'))
    this.#socket.on('error', () => undefined).on('close', () => (this.isClosed = true))
    createInterface({ input: this.#socket })
      .on('line', (text) => this.#hear(text))
      .on('error', () => undefined)
  }

  ask(method: string, params: object): Promise<Line> {
    const id = ++this.#id
    this.tell(method, params, id)
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }

  tell(method: string, params: object, id?: number): void {
    this.#socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
  }

  /** Attaches, calls until told, and takes every third call back. */
  async work(server: string, ms: number, isOver: () => boolean): Promise<void> {
    this.#ms = ms
    await this.ask('session/attach', { server })
    if (server === 'kept') {
      const clientInfo = { name: 'host', version: '1' }
      await this.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
      this.tell('notifications/initialized', {})
    }
    for (let turn = 0; !isOver() && !this.isClosed; turn++) {
      this.#token = `of turn ${turn}`
      this.#steps = 0
      const called = { name: 'wait', arguments: { ms }, _meta: { ...speaker, progressToken: this.#token } }
      const answer = this.ask('tools/call', called)
      if (turn % 3 === 2) {
        const requestId = this.#id
        await eventually(() => this.#steps > 0 || this.isClosed)
        this.#waiting.delete(requestId)
        this.#takenBack.add(requestId)
        this.tell('notifications/cancelled', { requestId })
        continue
      }
      const line = await answer
      if (waitedIn(line) !== ms) this.strange.push(JSON.stringify({ asked: ms, ...line }))
      this.done.push(this.#steps)
    }
  }

  #hear(text: string): void {
    const line = JSON.parse(text) as Line
    const id = Number(line.id)
    if (line.method === 'notifications/progress') {
      const { progressToken } = line.params as { progressToken: unknown }
      if (progressToken === this.#token) this.#steps += 1
      else if (!String(progressToken).startsWith('of turn ')) this.strange.push(text)
    } else if (this.#waiting.has(id)) {
      this.#waiting.get(id)?.(line)
      this.#waiting.delete(id)
    } else if (!this.#takenBack.delete(id) || (line.error === undefined && waitedIn(line) !== this.#ms))
      this.strange.push(text)
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }
}

test('sessions of servers that a reload does not change notice nothing of ten of them, in either era', async () => {
  const config = (n: number): object =>
    configOf({
      kept: fixture('slow'),
      shared: fixture('slow', { args: ['/app/slow.mjs', 'stateless'], instance: 'shared' }),
      other: fixture('slow', { env: { N: String(n) } }),
    })
  await using at = await daemon(config(0))
  const pids = async (): Promise<readonly unknown[]> => {
    const views = ['kept', 'shared'].map((server) => at.client.call('servers/get', { server }))
    return (await Promise.all(views)).flatMap(({ instances }) => instances.map(({ id, pid }) => [id, pid]))
  }
  using stack = new DisposableStack()
  const hosts = Array.from({ length: 20 }, () => stack.use(new Host(at)))
  let isOver = false
  const work = hosts
    .map((host, n) => host.work(n % 2 === 0 ? 'kept' : 'shared', 100 + n, () => isOver))
    .map(handled)
  await eventually(() => hosts.every(({ done }) => done.length > 0))
  const before = await pids()
  expect(before).toHaveLength(11)
  for (let n = 1; n <= 10; n++) {
    await writeFile(at.config, JSON.stringify(config(n)))
    const made = hosts.reduce((sum, { done }) => sum + done.length, 0)
    const reloaded = await at.client.call('daemon/reload', {})
    expect(reloaded).toMatchObject({ changed: ['other'], unchanged: ['kept', 'shared'], removed: [] })
    await eventually(() => hosts.reduce((sum, { done }) => sum + done.length, 0) > made + 5)
  }
  isOver = true
  await Promise.all(work)
  expect(hosts.flatMap(({ strange }) => strange)).toEqual([])
  expect(hosts.filter(({ isClosed }) => isClosed)).toEqual([])
  expect(new Set(hosts.flatMap(({ done }) => done))).toEqual(new Set([10]))
  expect(await pids()).toEqual(before)
})
