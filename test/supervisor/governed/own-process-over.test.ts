// A call in a process of its own that the session's process answers: it is over, its process ends, and its id is free for a call
// that has its own answer.
import { expect, test } from 'vitest'
import { attach } from '../../support/attach.ts'
import { eventually } from '../../support/eventually.ts'
import { serverSettings } from '../../support/server-settings.ts'

test.each(['is there', 'has its call'])(
  'a call that another process answers is over, and its id is free, once its own process %s',
  async (when) => {
    await using host = await attach(serverSettings('answers-another.mjs', { instance: 'call' }))
    const own = () => host.session.views().filter(({ purpose }) => purpose === 'call')
    const call = (args: object): void =>
      host.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 't', arguments: args } })
    call({})
    await eventually(() =>
      when === 'is there' ? own().some(({ state }) => state === 'ready') : host.logs.lines(1)[0] === 'called',
    )
    host.send({ jsonrpc: '2.0', id: 3, method: 'ping', params: { answers: 2 } })
    expect((await host.answer(2)).result).toMatchObject({ content: [{ text: 'of another' }] })
    await eventually(() => own().length === 0)
    call({ text: 'its own' })
    await eventually(() => host.lines.some((line) => line.includes('its own')))
    const answers = host.lines.filter((line) => line.includes('"id":2,'))
    expect(answers).toHaveLength(2)
    await eventually(() => own().length === 0)
  },
)
