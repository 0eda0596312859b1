// A server with a process for each call that says that its lists have changed while such a process starts.
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { Launch, Running } from '../../src/supervisor/ports.ts'
import { reached, stage, type Stage, ways } from '../support/changing.ts'
import { plainLaunch } from '../support/plain-launch.ts'

const every = Object.keys(ways) as (keyof typeof ways)[]
/** Where a call's own process is greeted before it is called, and can answer with more than was asked. */
const greeted = every.filter((way) => way !== 'in a session of the later era')

/** A server whose first process runs, and whose others wait for `open`. */
async function gated(way: keyof typeof ways, initializeMs = 10_000) {
  const gate = Promise.withResolvers<void>()
  const first = Promise.withResolvers<Running>()
  const isWaiting = Promise.withResolvers<void>()
  let launches = 0
  const launch: Launch = async (...args) => {
    launches += 1
    if (launches === 1) {
      const running = await plainLaunch(...args)
      first.resolve(running)
      return running
    }
    isWaiting.resolve()
    await gate.promise
    return plainLaunch(...args)
  }
  const at = await stage(way, { echo: 'allow', instance: 'call', launch, initializeMs })
  const made = at.call('echo', { text: 'x' })
  await isWaiting.promise
  return { at, made, running: await first.promise, open: gate.resolve }
}

/** Resolves when Sallyport has heard from the server that its lists have changed. */
async function says({ initPid, stdout }: Running, signal: NodeJS.Signals): Promise<void> {
  const heard = new Promise<void>((resolve) => {
    stdout.on('data', (chunk: Buffer) => chunk.includes('/list_changed') && resolve())
  })
  process.kill(initPid, signal)
  await heard
}

const calls = (at: Stage): readonly string[] => reached(at).filter((method) => method === 'tools/call')

test.each(every)('%s a tool that changes while its call’s process starts is not called', async (way) => {
  const { at, made, running, open } = await gated(way)
  await using _at = at
  await says(running, 'SIGUSR2')
  open()
  expect(await made).toBe('ERR_PERMIT_REFUSED')
  expect(calls(at)).toEqual([])
  expect(at.governed.governance.ledger.trust('fixture', 'echo')).toMatchObject({ epoch: 1 })
})

test.each(every)('%s a tool that stays as it was is called', async (way) => {
  const { at, made, running, open } = await gated(way)
  await using _at = at
  await says(running, 'SIGHUP')
  open()
  expect(await made).toBe(null)
  expect(calls(at)).toEqual(['tools/call'])
})

test.each(greeted)(
  '%s a tool that is another in its call’s process, or is not there, is not called',
  async (way) => {
    await using at = await stage(way, { echo: 'allow', instance: 'call' })
    expect(await at.call('echo', { text: 'x' })).toBe(null)
    await writeFile(`${at.record}.turned`, JSON.stringify({}))
    expect(await at.call('echo', { text: 'x' })).toBe(null)
    // Two of one name are none: it does not list what is to be called.
    await writeFile(`${at.record}.turned`, JSON.stringify({ name: 'change' }))
    expect(await at.call('echo', { text: 'x' })).toBe('ERR_TOOL_NOT_FOUND')
    expect(at.governed.governance.ledger.trust('fixture', 'echo')).toMatchObject({ epoch: 0 })
    await writeFile(`${at.record}.turned`, JSON.stringify({ description: 'Say it to everybody.' }))
    expect(await at.call('echo', { text: 'x' })).toBe('ERR_DECLARATION_MISMATCH')
    expect(await at.call('echo', { text: 'x' })).toBe('ERR_DECLARATION_MISMATCH')
    const refused = at.governed.records().filter(({ type }) => type === 'call.denied')
    const reason = expect.stringMatching(/fixture lists echo otherwise .*sallyport accept fixture$/) as string
    for (const { body } of refused.slice(-2))
      expect(body).toMatchObject({ failure: 'MP-FH-003', check: null, reason })
    expect(at.governed.governance.permits.list()).toEqual([])
    expect(calls(at)).toEqual(['tools/call', 'tools/call'])
    expect(at.governed.governance.ledger.trust('fixture', 'echo')).toMatchObject({ epoch: 1 })
  },
)

/** Where a server that is halted is stopped, too. */
const stopped = greeted.filter((way) => way !== 'in a session')

test.each(stopped)('%s a tool beside it that nobody declared is why it is not called', async (way) => {
  await using at = await stage(way, { echo: 'allow', instance: 'call' })
  expect(await at.call('echo', { text: 'x' })).toBe(null)
  await writeFile(`${at.record}.turned`, JSON.stringify({ unknown: "json:1},{'name':'sneak'" }))
  expect(await at.call('echo', { text: 'x' })).toBe('ERR_SURFACE_UNGOVERNED')
  expect(calls(at)).toEqual(['tools/call'])
  const refused = at.governed.records().findLast(({ type }) => type === 'call.denied')?.body
  expect(refused).toMatchObject({ failure: 'MP-FH-005' })
})

/** Where it is told that it is initialized. */
const older = greeted.filter((way) => way !== 'over the control socket in the later era')

const anew = { description: 'Say it to everybody.' }
const turns = [
  ...every.map((way) => [way, 'silent', 'from the beginning, and does not say so'] as const),
  ...older.map((way) => [way, 'introduced', 'once it is told that it is initialized'] as const),
]

test.each(turns)(
  '%s a tool that its call’s process lists otherwise (%s: %s) is not called',
  async (way, when) => {
    await using at = await stage(way, { echo: 'allow', instance: 'call' })
    expect(await at.call('echo', { text: 'x' })).toBe(null)
    await writeFile(`${at.record}.${when}`, JSON.stringify(anew))
    expect(await at.call('echo', { text: 'x' })).toBe('ERR_DECLARATION_MISMATCH')
    expect(calls(at)).toEqual(['tools/call'])
    expect(at.governed.governance.ledger.trust('fixture', 'echo')).toMatchObject({ epoch: 1 })
  },
)

test.each(['in a session', 'over the control socket in the later era'] as const)(
  '%s one whose two processes say in turns that they have changed keeps no call for ever',
  async (way) => {
    const { at, made, running, open } = await gated(way, 1000)
    await using _at = at
    await writeFile(`${at.record}.slow`, '')
    await says(running, 'SIGHUP')
    open()
    expect(await made).toBe('ERR_SERVER_UNAVAILABLE')
    expect(calls(at)).toEqual([])
  },
)
