// A task that asks for more and more, one piece after another: all of it is in the queue that its server has.
import { expect, test } from 'vitest'
import { askableMeta, attach } from '../../support/attach.ts'
import { fixture } from '../../support/plain-launch.ts'
import { serverSettings } from '../../support/server-settings.ts'

test.each(['an answer', 'a notification'])(
  'what %s says that a task asks waits beside what it asked before, until that is answered',
  async (how) => {
    const elicitation = { enabled: true, timeoutMs: 60_000, queue: 2 }
    const args = [fixture('raw-script.mjs')]
    await using host = await attach(serverSettings('raw-script.mjs', { args, elicitation }))
    let id = 0
    const ask = (method: string, params: object, ...replies: readonly object[]) => {
      id += 1
      const told = replies.map((reply) =>
        JSON.stringify({ jsonrpc: '2.0', ...('method' in reply ? reply : { id, result: reply }) }),
      )
      const reply = Buffer.from(`${told.join('\n')}\n`).toString('base64')
      const _meta = { ...askableMeta, '@reply': reply }
      host.send({ jsonrpc: '2.0', id, method, params: { ...params, _meta } })
      return host.answer(id)
    }
    /** True where the host is asked that */
    const asks = async (...names: readonly string[]): Promise<boolean> => {
      const question = { method: 'elicitation/create', params: {} }
      const inputRequests = Object.fromEntries(names.map((name) => [name, question]))
      const task = { taskId: 'k', status: 'input_required', inputRequests }
      if (how === 'an answer') return (await ask('tasks/get', { taskId: 'k' }, task)).error === undefined
      const before = host.lines.length
      await ask('tasks/list', {}, { method: 'notifications/tasks', params: task }, { tasks: [] })
      return host.lines.slice(before).some((line) => line.includes('input_required'))
    }
    const answer = (name: string) =>
      ask('tasks/update', { taskId: 'k', inputResponses: { [name]: { action: 'decline' } } }, {})

    await ask('tools/call', { name: 't' }, { resultType: 'task', taskId: 'k', status: 'working' })
    await ask('subscriptions/listen', { notifications: { taskIds: ['k'] } }, {})
    expect(await asks('a')).toBe(true)
    expect(await asks('b')).toBe(true)
    expect(await asks('c')).toBe(false)
    expect(await asks('a', 'b')).toBe(true)
    await answer('a')
    expect(await asks('c')).toBe(true)
    expect(await asks('d')).toBe(false)
  },
)
