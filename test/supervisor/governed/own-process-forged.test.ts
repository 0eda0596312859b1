// A call that has a process of its own is answered by that process alone, whatever the session's says under its id.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { fixture } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { tempDir } from '../../support/temp-dir.ts'

test.each(['is there', 'has its call'])(
  'what another process answers to a call is nobody’s answer, once its own process %s',
  async (when) => {
    await using dir = await tempDir()
    const record = join(dir.path, 'received')
    const args = [fixture('answers-another.mjs'), record]
    await using host = await attach(serverSettings('answers-another.mjs', { args, instance: 'call' }))
    const own = () => host.session.views().filter(({ purpose }) => purpose === 'call')
    const call = (id: number, args: object): void =>
      host.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 't', arguments: args } })
    call(2, {})
    await eventually(() =>
      when === 'is there'
        ? own().some(({ state }) => state === 'ready')
        : host.logs.last(1).lines[0] === 'called',
    )
    host.send({ jsonrpc: '2.0', id: 3, method: 'ping', params: { answers: 2 } })
    await host.answer(3)
    expect(host.eventsOf('session/unexpected-answer')).toMatchObject([{ detail: { id: '2' } }])
    expect(own()).toHaveLength(1)

    // The host takes it back by the id that it gave it, and then its process ends.
    host.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } })
    await eventually(() => own().length === 0)
    call(4, { text: 'its own' })
    expect((await host.answer(4)).result).toMatchObject({ content: [{ text: 'its own' }] })
    await eventually(() => own().length === 0)
    expect(host.lines.join('')).not.toContain('of another')
    const heard = readFileSync(record, 'utf8').split('\n')
    const session = heard.find((line) => line.includes('"ping"'))?.split(' ')[0] ?? ''
    const hasCancelled = (line: string): boolean => line.includes('notifications/cancelled')
    expect(heard.filter((line) => line.startsWith(`${session} `) && hasCancelled(line))).toEqual([])
    const outcomes = host.governed.records().filter(({ type }) => type === 'call.outcome')
    expect(outcomes.map(({ body }) => body)).toMatchObject([{ outcome: 'cancelled' }, { outcome: 'result' }])
  },
)
