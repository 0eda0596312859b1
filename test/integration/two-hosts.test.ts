// Two users on one daemon: each sees and touches what is its own, and neither is the operator.
import { readFileSync } from 'node:fs'
import { chmod, cp, mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catalogue } from '../../src/errors.ts'
import { schemaOf } from '../../src/schema/validate.ts'
import { asUser } from '../support/as-user.ts'
import { configOf, fixture, place, serve } from '../support/daemon.ts'
import type { Place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { serverSettings } from '../support/server-settings.ts'
import { speaker } from '../support/speaker.ts'
import { caller, superviseAll } from '../support/supervisor.ts'
import { isRoot } from '../support/user.ts'
import { watching } from '../support/watching.ts'
import { bodiesOf, witness, type Witness } from '../support/witness.ts'
import { patienceMs } from '../support/patience.ts'

const [ann, bob, stranger] = [47_893, 47_894, 47_895]
/** A group that every Linux has, and whose members the tests are when they say so */
const group = 'users'
const gid = Number(/^users:[^:]*:(\d+):/m.exec(readFileSync('/etc/group', 'utf8'))?.[1])

/** All that the control protocol lets a host say; whatever else it has, now or later, is the operator's. */
const hostsMay: ReadonlySet<string> = new Set([
  'calls/cancel',
  'calls/output',
  'events/subscribe',
  'sallyport/hello',
  'servers/get',
  'servers/launch',
  'servers/list',
  'servers/remove',
  'servers/start',
  'servers/stop',
  'session/attach',
  'session/result',
  'tools/call',
  'tools/describe',
  'tools/list',
  'tools/search',
])
const methods = Object.keys(schemaOf('control')['properties'] as object)
const operatorOnly = methods.filter((method) => !hostsMay.has(method))

let seen: Witness
let at: Place
let life: Awaited<ReturnType<typeof serve>>
const hostSocket = (): string => join(at.runtimeDir, 'host/host.sock')
const operatorSocket = (): string => join(at.runtimeDir, 'operator/operator.sock')

beforeAll(async () => {
  seen = await witness()
  const shared = fixture('shares', { instance: 'shared' })
  const more = {
    ...(isRoot ? { host_group: group } : {}),
    dynamic: { enabled: true, profile: 'node', tools: { allow: ['echo'] }, in_all: 3 },
    max_dynamic_servers: 2,
    rules: [
      { permission: 'mcp:asked:*', action: 'ask' },
      { permission: 'mcp:*:*', action: 'allow' },
    ],
  }
  const tasks = fixture('tasks', { args: ['/app/tasks.mjs', 'legacy'] })
  const own = seen.entry('own', { instance: 'call', pool: { size: 0 } })
  const judged = fixture('hostile-schemas')
  at = await place(
    configOf({ plain: seen.entry('plain'), asked: seen.entry('asked'), shared, tasks, own, judged }, more),
  )
  await chmod(at.folder, 0o711)
  life = await serve(at)
})
afterAll(async () => {
  await life.client[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
  await seen[Symbol.asyncDispose]()
})

const hostOf = (uid: number): RawCaller => RawCaller.openAs(uid, [gid], hostSocket())
const echo = (server = 'plain') => ({ server, tool: 'echo', arguments: { text: 'x' } })

type Instances = { readonly instances: readonly { readonly id: string; readonly principal: string }[] }
const instancesOf = async (who: RawCaller): Promise<Instances['instances']> =>
  ((await who.ask('servers/get', { server: 'plain' })).result as unknown as Instances).instances

const asRoot: Readonly<Record<string, () => Promise<void>>> = {
  'each has an instance of its own, and can stop no other': async () => {
    using both = pair()
    const [one, other] = both
    expect((await one.ask('sallyport/hello', {})).result).toMatchObject({
      separation: 'full',
      principal: { kind: 'uid', id: String(ann) },
    })
    await one.ask('tools/call', echo())
    const [mine] = await instancesOf(one)
    expect(mine?.principal).toBe(String(ann))
    expect(await instancesOf(other)).toEqual([])
    expect((await other.ask('servers/stop', { server: 'plain' })).result).toEqual({ stopped: [] })
    await other.ask('tools/call', echo())
    const [theirs] = await instancesOf(other)
    expect(theirs?.id).not.toBe(mine?.id)
    expect((await other.ask('servers/stop', { server: 'plain' })).result).toEqual({ stopped: [theirs?.id] })
    expect(await instancesOf(one)).toMatchObject([{ id: mine?.id, state: 'ready' }])
    const all = await life.client.call('servers/get', { server: 'plain' })
    expect(all.instances.map(({ principal }) => principal)).toContain(String(ann))
  },

  'the process that sessions of one share is not the other’s': async () => {
    const sessionOf = async (uid: number): Promise<RawCaller> => {
      const host = hostOf(uid)
      expect((await host.ask('session/attach', { server: 'shared' })).error).toBeUndefined()
      return host
    }
    const call = async (host: RawCaller, name: string): Promise<string> =>
      JSON.stringify((await host.ask('tools/call', { name, arguments: {}, _meta: speaker })).result)
    const pidIn = (host: RawCaller): Promise<string> => call(host, 'pid')
    using mine = await sessionOf(ann)
    using alsoMine = await sessionOf(ann)
    using theirs = await sessionOf(bob)
    expect(await pidIn(mine)).toBe(await pidIn(alsoMine))
    expect(await call(theirs, 'heard')).not.toContain('pid')
    const shared = async (host: RawCaller) =>
      (await host.ask('servers/get', { server: 'shared' })).result as unknown as Instances
    using both = pair()
    const [one, other] = both
    expect((await shared(one)).instances).toMatchObject([{ principal: String(ann), sessions: 2 }])
    expect((await shared(other)).instances).toMatchObject([{ principal: String(bob), sessions: 1 }])
    const { stopped } = (await other.ask('servers/stop', { server: 'shared' })).result as {
      stopped: string[]
    }
    expect(stopped).toHaveLength(1)
    expect((await shared(one)).instances).toMatchObject([{ state: 'ready', sessions: 2 }])
    expect(await pidIn(mine)).toBe(await pidIn(alsoMine))
  },

  'neither hears of the other’s calls, nor cancels them': async () => {
    using both = pair()
    const [one, other] = both
    using listeners = pair()
    const [hears, alsoHears] = listeners
    await Promise.all([hears, alsoHears].map((who) => who.ask('events/subscribe', { since: 0 })))
    const waiting = one.ask('tools/call', { server: 'plain', tool: 'wait' })
    const started = await eventually(() =>
      hears.lines
        .map(
          (line) => JSON.parse(line) as { params?: { type: string; detail: { call: string; tool: string } } },
        )
        .find(({ params }) => params?.type === 'call/started' && params.detail.tool === 'wait'),
    )
    const call_id = started.params?.detail.call ?? ''
    expect((await other.ask('calls/cancel', { call_id })).result).toEqual({ cancelled: false })
    expect((await other.ask('calls/cancel', { request: 1 })).result).toEqual({ cancelled: false })
    // The same uid may, from another connection.
    using third = hostOf(ann)
    expect((await third.ask('calls/cancel', { call_id })).result).toEqual({ cancelled: true })
    expect((await waiting).error?.data.code).toBe('ERR_CALL_CANCELLED')
    await other.ask('tools/call', echo())
    await eventually(() => alsoHears.lines.some((line) => line.includes('call/ended')))
    expect(alsoHears.lines.join('\n')).not.toContain(call_id)
    expect(alsoHears.lines.filter((line) => line.includes(`"principal":"${ann}"`))).toEqual([])
  },

  'calls in processes of their own that one keeps running leave the other as many': async () => {
    using both = pair()
    const [one, other] = both
    const wait = () => one.ask('tools/call', { server: 'own', tool: 'wait' })
    const waiting = Array.from({ length: 8 }, wait)
    await eventually(() => seen.calls('own').length === waiting.length)
    const more = wait() // for its turn
    expect((await other.ask('tools/call', echo('own'))).result).toMatchObject({ type: 'output' })
    expect(seen.calls('own')).toHaveLength(waiting.length + 1)
    await one.ask('servers/stop', { server: 'own' })
    for (const { error } of await Promise.all([...waiting, more]))
      expect(error?.data.code).toBe('ERR_SERVER_UNAVAILABLE')
  },

  'arguments of one by which judging takes too long twice take no tool from the other': async () => {
    using both = pair()
    const [one, other] = both
    const call = (who: RawCaller, text: string) =>
      who.ask('tools/call', { server: 'judged', tool: 'redos', arguments: { text } })
    for (const _ of ['once', 'twice']) await call(one, `${'a'.repeat(60)}!`)
    expect((await call(one, 'aaa')).error?.message).toContain('is refused until sallyport accept judged')
    expect((await call(other, 'aaa')).result).toMatchObject({ type: 'output' })
  },

  'a server that one launched is nobody’s to the other': async () => {
    using both = pair()
    const [one, other] = both
    using hears = hostOf(bob)
    await hears.ask('events/subscribe', { since: 0 })
    const source = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
    const launch = {
      name: 'mine',
      command: 'node',
      args: ['/app/echo.mjs'],
      package: { source, target: '/app' },
    }
    expect((await one.ask('servers/launch', launch)).error).toBeUndefined()
    expect((await one.ask('tools/call', echo('mine'))).result).toMatchObject({ type: 'output' })
    for (const [method, params] of [
      ['servers/get', { server: 'mine' }],
      ['servers/start', { server: 'mine' }],
      ['servers/stop', { server: 'mine' }],
      ['servers/remove', { server: 'mine' }],
      ['tools/call', echo('mine')],
      ['tools/describe', { server: 'mine', tool: 'echo' }],
    ] as const)
      expect((await other.ask(method, params)).error?.data.code, method).toBe('ERR_SERVER_NOT_FOUND')
    using attaching = hostOf(bob)
    const attached = await attaching.ask('session/attach', { server: 'mine' })
    expect(attached.error?.data.code).toBe('ERR_SERVER_NOT_FOUND')
    for (const method of ['servers/list', 'tools/list'])
      expect(JSON.stringify(await other.ask(method, {})), method).not.toContain('"mine"')
    expect(JSON.stringify(await other.ask('tools/search', { query: 'arguments' }))).not.toContain('mine')
    expect(JSON.stringify(await one.ask('servers/list', {}))).toContain('"mine"')
    const alike = async (who: RawCaller, name = 'Mine') =>
      (await who.ask('servers/launch', { ...launch, name })).error?.message
    expect(await alike(other)).toContain('the name Mine reads as a name that is taken; choose another')
    expect(await alike(one)).toContain('reads as mine, which is taken')
    expect(await alike(other, 'P1ain')).toContain('reads as plain, which is taken')
    expect((await one.ask('servers/remove', { server: 'mine' })).result).toMatchObject({ removed: 'mine' })
    expect(hears.lines.filter((line) => line.includes('"mine"'))).toEqual([])
    // Nor does a name tell what became of it.
    expect((await one.ask('servers/launch', launch)).error).toBeUndefined()
    await life.client.call('servers/quarantine', { server: 'mine', reason: 'it lists what ann keeps' })
    expect((await one.ask('servers/remove', { server: 'mine' })).error).toBeUndefined()
    const [mine, theirs] = [
      await one.ask('servers/launch', launch),
      await other.ask('servers/launch', launch),
    ]
    for (const { error } of [mine, theirs]) expect(error?.data.code).toBe('ERR_DYNAMIC_REFUSED')
    expect(mine.error?.message).toContain('it lists what ann keeps')
    expect(theirs.error?.message).not.toContain('ann')
    await life.client.call('servers/release', { name: 'mine' })
  },

  'nothing that a launched server earned is the next one’s of that name, whoever launches it': async () => {
    using both = pair()
    const [one, other] = both
    const source = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
    const earned = async () =>
      (await life.client.call('trust/list', {})).trust.find(
        ({ server, tool }) => server === 'again' && tool === 'echo',
      )
    const identities = new Set<string>()
    for (const who of [one, other, one]) {
      const code = { command: 'node', args: ['/app/echo.mjs'], package: { source, target: '/app' } }
      expect((await who.ask('servers/launch', { name: 'again', ...code })).error).toBeUndefined()
      for (const evidence of [1, 2]) {
        expect((await who.ask('tools/call', echo('again'))).error).toBeUndefined()
        expect(await earned()).toMatchObject({ evidence })
      }
      identities.add((await earned())?.identity ?? '')
      await who.ask('servers/remove', { server: 'again' })
      expect(await earned()).toBeUndefined()
    }
    expect(identities.size).toBe(3) // nobody's permit or approval is about another one's server
  },

  'one can’t take up what the other may launch, nor both more than all may': async () => {
    using both = pair()
    const [one, other] = both
    const source = fileURLToPath(new URL('../fixtures/servers', import.meta.url))
    const code = { source, target: '/app' }
    const launch = async (who: RawCaller, name: string) =>
      (await who.ask('servers/launch', { name, command: 'node', args: ['/app/echo.mjs'], package: code }))
        .error
    for (const name of ['a1', 'a2']) expect(await launch(one, name)).toBeUndefined()
    const refusal = (what: string) => ({
      message: expect.stringContaining(what),
      data: { code: 'ERR_DYNAMIC_REFUSED' },
    })
    expect(await launch(one, 'a3')).toMatchObject(refusal(`max_dynamic_servers (2) of uid ${ann}`))
    expect(await launch(other, 'b1')).toBeUndefined()
    expect(await launch(other, 'b2')).toMatchObject(refusal('dynamic.in_all (3)'))
    await one.ask('servers/remove', { server: 'a1' })
    expect(await launch(other, 'b2')).toBeUndefined()
    expect(await launch(one, 'a1')).toMatchObject(refusal('dynamic.in_all (3)'))
    await one.ask('servers/remove', { server: 'a2' })
    for (const server of ['b1', 'b2']) await other.ask('servers/remove', { server })
  },

  'code that a host could not read itself is launched for nobody, whatever leads there': async () => {
    using host = hostOf(ann)
    const [closed, link] = [join(at.folder, 'closed'), join(at.folder, 'link')]
    await mkdir(join(closed, 'code'), { recursive: true })
    await cp(new URL('../fixtures/servers/echo.mjs', import.meta.url), join(closed, 'code/echo.mjs'))
    await chmod(closed, 0o700)
    await rm(link, { force: true }) // of a first try
    await symlink(join(closed, 'code'), link)
    const refused = async (source: string) => {
      const code = { source, target: '/app' }
      const launch = { name: 'theirs', command: 'node', args: ['/app/echo.mjs'], package: code }
      return (await host.ask('servers/launch', launch)).error
    }
    expect(await refused(link)).toMatchObject({ data: { code: 'ERR_DYNAMIC_REFUSED' } })
    // Nor does a host learn what is in there.
    const [there, absent] = [join(closed, 'code'), join(closed, 'no-such')]
    const said = await refused(there)
    expect(said).toMatchObject({ data: { code: 'ERR_DYNAMIC_REFUSED' } })
    expect(said?.message.replaceAll(there, absent)).toBe((await refused(absent))?.message)
    // And of a folder that is open, nothing that is closed is read.
    await chmod(closed, 0o755)
    expect(await refused(there)).toBeUndefined()
    await host.ask('servers/remove', { server: 'theirs' })
    for (const name of ['key', 'keys']) {
      const path = join(there, name)
      await (name === 'key' ? writeFile(path, 'x', { mode: 0o600 }) : mkdir(path, { mode: 0o711 }))
      expect(await refused(there)).toMatchObject({
        message: expect.stringContaining(`${path} is not for every user to read`),
        data: { code: 'ERR_PACKAGE_UNSAFE' },
      })
      await rm(path, { recursive: true })
    }
  },

  'what a call or a session of one left is nobody’s to the other': async () => {
    using both = pair()
    const [one, other] = both
    const long = { server: 'plain', tool: 'echo', arguments: { text: 'x'.repeat(1_100_000) } }
    const { call_id } = (await one.ask('tools/call', long)).result as { call_id: string }
    using attaching = hostOf(ann)
    const { session } = (await attaching.ask('session/attach', { server: 'plain' })).result as {
      session: string
    }
    expect((await other.ask('calls/output', { call_id })).error?.data.code).toBe('ERR_OUTPUT_NOT_FOUND')
    expect((await other.ask('session/result', { session })).error?.data.code).toBe('ERR_INVALID_PARAMS')
    // A later connection of the same uid may.
    using third = hostOf(ann)
    expect((await third.ask('calls/output', { call_id, limit: 16 })).result).toMatchObject({ offset: 0 })
    expect((await third.ask('session/result', { session })).result).toMatchObject({ ended: false })
  },

  'a task of one is none for the other, nor one of the same id': async () => {
    const sessionOf = async (uid: number): Promise<RawCaller> => {
      const host = hostOf(uid)
      await host.ask('session/attach', { server: 'tasks' })
      await host.ask('initialize', { protocolVersion: '2025-11-25' })
      return host
    }
    const begin = (host: RawCaller, taskId: string) =>
      host.ask('tools/call', { name: 'work', arguments: { taskId }, task: {} })
    using mine = await sessionOf(ann)
    using alsoMine = await sessionOf(ann)
    using theirs = await sessionOf(bob)
    await begin(mine, 'hers')
    await begin(mine, 'both')
    await begin(theirs, 'both')
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update'])
      expect((await theirs.ask(method, { taskId: 'hers' })).error?.data.code, method).toBe(
        'ERR_TASK_NOT_FOUND',
      )
    // The process of another session of hers has no such task, and may be asked.
    expect((await alsoMine.ask('tasks/get', { taskId: 'hers' })).error?.message).toBe('no such task')
    expect((await theirs.ask('tasks/cancel', { taskId: 'both' })).result).toMatchObject({
      status: 'cancelled',
    })
    expect((await mine.ask('tasks/get', { taskId: 'both' })).result).toMatchObject({ status: 'working' })
    const { tasks } = (await theirs.ask('tasks/list', {})).result as { tasks: { taskId: string }[] }
    expect(tasks.map(({ taskId }) => taskId)).toEqual(['both'])
    const refused = await eventually(() => {
      const all = bodiesOf(at.stateDir, 'call.denied').filter((one) => one['server'] === 'tasks')
      return all.length === 4 && all
    })
    expect(new Set(refused.map((one) => one['principal']))).toEqual(new Set([String(bob)]))
  },

  'an approval for one is none for the other': async () => {
    using both = pair()
    const [one, other] = both
    await using watch = await watching(life.client, ({ id, principal }) =>
      principal === String(ann)
        ? life.client.call('approvals/approve', { id, scope: 'policy' })
        : life.client.call('approvals/deny', { id }),
    )
    expect((await one.ask('tools/call', echo('asked'))).error).toBeUndefined()
    expect((await one.ask('tools/call', echo('asked'))).error).toBeUndefined()
    expect(watch.asked).toHaveLength(1)
    expect((await other.ask('tools/call', echo('asked'))).error?.data.code).toBe('ERR_APPROVAL_DENIED')
    expect(seen.calls('asked')).toHaveLength(2)
  },

  'the record names the uid that the kernel named': async () => {
    const intents = bodiesOf(at.stateDir, 'call.intent')
    expect(new Set(intents.map(({ principal }) => principal))).toEqual(new Set([String(ann), String(bob)]))
  },

  'what only the operator may is refused to both, on host.sock': async () => {
    using both = pair()
    const [one, other] = both
    for (const who of [one, other])
      for (const method of operatorOnly)
        expect((await who.ask(method, {})).error, method).toMatchObject({
          code: catalogue.ERR_NOT_AUTHORISED.rpc,
          data: { code: 'ERR_NOT_AUTHORISED' },
        })
  },

  'who is not of the group does not come in, nor a host at the operator’s door': async () => {
    using outside = RawCaller.openAs(stranger, [], hostSocket())
    using host = RawCaller.openAs(ann, [gid], operatorSocket())
    expect((await outside.ask('sallyport/hello', {})).errno).toBe('EACCES')
    expect((await host.ask('sallyport/hello', {})).errno).toBe('EACCES')
  },

  'the command line of another uid ends with 6, on either door': async () => {
    for (const verb of [
      ['ps'],
      ['call', 'plain', 'echo'],
      ['approvals'],
      ['audit'],
      ['explain', 'plain', 'echo'],
    ]) {
      const said = await asUser('fixtures/cli-status.ts', ...verb, '--runtime', at.runtimeDir)
      expect(JSON.parse(said), verb.join(' ')).toMatchObject({
        status: 6,
        stderr: expect.stringContaining('ERR_NOT_AUTHORISED') as string,
      })
      const mend = said.includes('operator.sock') ? 'it is for root and the daemon’s own user' : 'host_group'
      expect(said, verb.join(' ')).toContain(mend)
    }
  },

  'the operator’s door asks the kernel even where its mode would let a host in': async () => {
    await chmod(join(at.runtimeDir, 'operator'), 0o755)
    await chmod(operatorSocket(), 0o666)
    using host = RawCaller.openAs(ann, [gid], operatorSocket())
    expect((await host.ask('approvals/list', {})).error?.data.code).toBe('ERR_NOT_AUTHORISED')
    expect(catalogue.ERR_NOT_AUTHORISED.exit).toBe(6)
  },
}

function pair(): [RawCaller, RawCaller] & Disposable {
  const both: [RawCaller, RawCaller] = [hostOf(ann), hostOf(bob)]
  return Object.assign(both, { [Symbol.dispose]: () => both.forEach((one) => one[Symbol.dispose]()) })
}

/** An ordinary user is one uid: what keeps others out is looked at, and who is who is told to the supervisor. */
const asOneUser: Readonly<Record<string, () => Promise<void>>> = {
  'what only the operator may is refused on host.sock to the same uid': async () => {
    using host = await RawCaller.open(hostSocket())
    for (const method of operatorOnly)
      expect((await host.ask(method, {})).error?.data.code, method).toBe('ERR_NOT_AUTHORISED')
    expect((await host.ask('sallyport/hello', {})).result).toMatchObject({ separation: 'none' })
  },

  'nobody else can reach either socket': async () => {
    const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777
    expect(await modeOf(hostSocket())).toBe(0o600)
    expect(await modeOf(operatorSocket())).toBe(0o600)
    expect(await modeOf(join(at.runtimeDir, 'operator'))).toBe(0o700)
    expect(await modeOf(join(at.runtimeDir, 'host'))).toBe(0o700)
  },

  'each principal has an instance of its own, and can stop no other': async () => {
    await using all = await superviseAll([serverSettings('echo.mjs')])
    const waiting = { signal: AbortSignal.timeout(patienceMs) }
    await all.supervisor.start(caller(ann), 'fixture', waiting)
    expect(all.supervisor.get(caller(bob), 'fixture').instances).toEqual([])
    expect(await all.supervisor.stop(caller(bob), 'fixture')).toEqual([])
    expect(all.supervisor.get(caller(ann), 'fixture').instances).toMatchObject([{ principal: String(ann) }])
  },
}

describe('two hosts', () => {
  test.each(Object.entries(isRoot ? asRoot : asOneUser))('%s', (_title, body) => body())
})
