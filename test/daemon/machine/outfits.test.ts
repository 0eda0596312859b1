// Processes of one call each: how many one principal may have of one server, and how long the next waits for one of them to be gone.
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { CallEquipment, LeaseAsk } from '../../../src/call/ports.ts'
import { createBroker } from '../../../src/credentials/broker.ts'
import { Outfits } from '../../../src/daemon/machine/outfits.ts'
import type { Outfit } from '../../../src/daemon/machine/outfit.ts'
import { type CallId, newInstanceId } from '../../../src/lib/ids.ts'
import type { WarmSandbox } from '../../../src/sandbox/launch.ts'
import { findInitBinary } from '../../../src/sandbox/init-binary.ts'
import { settingsFor } from '../../support/launch.ts'

const { signal } = new AbortController()
const most = 8
const boundMs = 2000
const settings = await settingsFor('echo.mjs', [], { instance: 'call', stop: { eof_ms: 300, term_ms: 700 } })
const probe = settings.servers.get('probe')
const profile = settings.profiles.get('node')
if (probe === undefined || profile === undefined) throw new Error('the settings have no server named probe')
const ladderMs = probe.stop.eofMs + probe.stop.termMs
const servers = new Map([probe, { ...probe, name: 'other' }].map((server) => [server.name, server]))

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** What is too late is told after one more look at the kernel, in turns that no clock counts. */
const lookedOnceMore = async (): Promise<void> => {
  for (let turns = 0; turns < 3; turns++) await turn()
}

const never = (): never => {
  throw new Error('nothing of this has a way out')
}

/** Outfits of calls that run, each with its process: those of `probe`, as many as there may be, and those of another server. */
async function full() {
  const outfits = new Outfits(
    { servers },
    {
      broker: createBroker({ sources: {}, environment: {}, uid: 0, initPath: await findInitBinary() }),
      openDoor: never,
      createInterceptor: never,
      limits: {
        connections: 1,
        connectMs: 1,
        handshakeMs: 1,
        idleMs: 1,
        totalMs: 1,
        bytesUp: 1,
        bytesDown: 1,
      },
      doors: '/nonexistent',
      tell: never,
      isRecording: () => true,
      strayed: never,
      misused: never,
      failed: never,
    },
  )
  let count = 0
  const ask = (server = 'probe', principal = '0'): LeaseAsk => ({
    call: `c-${++count}` as CallId,
    permit: 'p',
    server,
    instance: null,
    kind: 'tool',
    subject: 'echo',
    principal,
    sideEffects: [],
    credentials: [],
  })
  const begin = async (
    name: string,
  ): Promise<{ readonly equipment: CallEquipment; readonly outfit: Outfit }> => {
    const server = servers.get(name) ?? never()
    const equipment = await outfits.equip(ask(name), { signal })
    const instance = equipment.process ?? newInstanceId()
    const fitting = await outfits.forLaunch(server, profile ?? never(), instance, { signal, principal: '0' })
    if (fitting === null) throw new Error('a process of a call has no outfit')
    return { equipment, outfit: fitting.outfit }
  }
  const running = []
  for (let n = 0; n < most; n++) running.push(await begin('probe'))
  const [first] = running
  if (first === undefined) throw new Error('there is none')
  const settled: string[] = []
  const next = async (principal = '0'): Promise<void> => {
    const code = await Promise.resolve(outfits.equip(ask('probe', principal), { signal })).then(
      ({ process }) => (process === null ? 'no process' : 'equipped'),
      (error: { code?: string }) => error.code ?? 'a bug',
    )
    settled.push(code)
  }
  return { outfits, first, next, settled, begin }
}

test('one more is refused at once while none of the calls is over', async () => {
  const { next, settled } = await full()
  await next()
  expect(settled).toEqual(['ERR_BUSY'])
})

test('those of one principal keep none of another principal’s waiting, who may have as many', async () => {
  const { next, settled } = await full()
  for (let n = 0; n <= most; n++) await next('1')
  expect(settled).toEqual([...Array.from({ length: most }, () => 'equipped'), 'ERR_BUSY'])
  await next()
  expect(settled.slice(most)).toEqual(['ERR_BUSY', 'ERR_BUSY'])
})

test('one more waits for the process of a call that is over to be gone', async () => {
  const { outfits, first, next, settled } = await full()
  first.equipment.end()
  void next()
  await vi.advanceTimersByTimeAsync(ladderMs)
  expect(settled).toEqual([])
  await outfits.dispose(first.outfit)
  await vi.advanceTimersByTimeAsync(0)
  expect(settled).toEqual(['equipped'])
})

test('it waits for its server’s ladder and the proof as a whole, however many others end meanwhile', async () => {
  const { outfits, first, next, settled, begin } = await full()
  const others = [await begin('other'), await begin('other'), await begin('other')]
  first.equipment.end()
  void next()
  for (const { outfit } of others) {
    await vi.advanceTimersByTimeAsync((ladderMs + boundMs) / 4)
    await outfits.dispose(outfit)
  }
  expect(settled).toEqual([])
  await vi.advanceTimersByTimeAsync((ladderMs + boundMs) / 4)
  await lookedOnceMore()
  expect(settled).toEqual(['ERR_BUSY'])
})

test('it hears also of an end that fails', async () => {
  const { outfits, first, next, settled } = await full()
  first.equipment.end()
  void next()
  const stuck = { [Symbol.asyncDispose]: () => Promise.reject(new Error('its folder stays')) }
  first.outfit.keepWarm(stuck as unknown as WarmSandbox)
  await expect(outfits.dispose(first.outfit)).rejects.toThrow('its folder stays')
  await vi.advanceTimersByTimeAsync(0)
  expect(settled).toEqual(['equipped'])
})
