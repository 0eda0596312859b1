// A bug that shows in one session, or in what one server says, is the end of that alone. Bugs are put in by the parts that a test gives.
import { expect, test } from 'vitest'
import type { SallyportError } from '../../src/errors.ts'
import { contained } from '../../src/supervisor/message/contained.ts'
import { Together } from '../../src/lib/together.ts'
import type { Redactor } from '../../src/schema/credentials.ts'
import type { Launch } from '../../src/supervisor/ports.ts'
import { TaskIds } from '../../src/supervisor/lanes/tasks.ts'
import { attach, type HostEnd } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { plainLaunch } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { caller, superviseAll } from '../support/supervisor.ts'
import { patienceMs } from '../support/patience.ts'

const bug = (): never => {
  throw new TypeError('a bug')
}

const initialize = {
  jsonrpc: '2.0',
  id: 'first',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'host', version: '1' } },
}
const list = { jsonrpc: '2.0', id: 'list', method: 'tools/list', params: {} }

/** Of whatever the server says nobody can look whether there is a secret in it. */
const unreadable: Launch = async (...asked) => ({ ...(await plainLaunch(...asked)), redactor })
const redactor = {
  redact: bug,
  stream: () => ({
    push: (chunk: Uint8Array) => chunk,
    flush: () => new Uint8Array(),
    found: new Set<string>(),
  }),
} as unknown as Redactor

async function failed(host: HostEnd): Promise<SallyportError | undefined> {
  await host.session.ended
  return host.eventsOf('session/failed').find(({ bug: found }) => found !== undefined)?.bug
}

test.each<[string, () => Promise<HostEnd>, readonly (object | Buffer)[]]>([
  [
    'what its host says',
    () => attach(serverSettings('echo.mjs'), { room: { weigh: () => undefined, hasRoom: bug } }),
    [Buffer.alloc(70_000, 'x')],
  ],
  ['what its server says', () => attach(serverSettings('echo.mjs'), { launch: unreadable }), [initialize]],
  [
    'what became of a call',
    () => attach(serverSettings('tasks.mjs'), { tasks: Object.assign(new TaskIds(), { add: bug }) }),
    [
      initialize,
      {
        jsonrpc: '2.0',
        id: 'call',
        method: 'tools/call',
        params: { name: 'work', arguments: {}, task: {} },
      },
    ],
  ],
])(
  'a bug in %s ends the session, which says so, and leaves others theirs',
  async (_where, begin, messages) => {
    await using other = await attach(serverSettings('echo.mjs'))
    await using host = await begin()
    host.send(...messages)
    expect(await failed(host)).toMatchObject({ code: 'ERR_INTERNAL', cause: { message: 'a bug' } })
    await eventually(() => host.socket.destroyed || host.socket.readableEnded)
    const count = (type: string): number =>
      host.governed.records().filter((record) => record.type === type).length
    await eventually(() => count('call.intent') === count('call.outcome'))
    other.send(initialize, list)
    expect((await other.answer('list')).error).toBeUndefined()
  },
)

test('a bug in what a server says to the daemon alone makes it unavailable, with its cause for the log', async () => {
  await using all = await superviseAll([serverSettings('echo.mjs')], { launch: unreadable })
  await expect(
    all.supervisor.start(caller(), 'fixture', { signal: AbortSignal.timeout(patienceMs) }),
  ).rejects.toMatchObject({ code: 'ERR_SERVER_UNAVAILABLE' })
})

test('work that throws is told of once, and what is told may throw for whoever is about', () => {
  const told: SallyportError[] = []
  contained(bug, (found) => void told.push(found))
  expect(told).toMatchObject([
    { code: 'ERR_INTERNAL', message: expect.stringContaining('log'), cause: { message: 'a bug' } },
  ])
  expect(() => contained(bug, bug)).toThrow('a bug')
})

test('of the steps of one turn each that throws is told of, and the others are taken', () => {
  const [told, taken]: [unknown[], string[]] = [[], []]
  const steps = new Together({ failed: (thrown) => void told.push(thrown) })
  for (const name of ['a', 'b', 'c']) steps.add(() => (name === 'b' ? bug() : void taken.push(name)))
  steps.now()
  expect([taken, told.length]).toEqual([['a', 'c'], 1])
})
