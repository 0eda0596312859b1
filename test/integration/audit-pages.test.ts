// Records that no single answer has room for: all that were asked for are shown, also to who goes on to follow.
import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { configOf, daemon, fixture, place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { ownDaemon } from '../support/own-daemon.ts'

/** Two of a call come to more than an answer holds where there are this many */
const calls = 500
const words = 'x'.repeat(20_000)
const lines = 900

const make = async (client: Client, count: number): Promise<void> => {
  for (let left = count; left > 0; left -= 10)
    await Promise.all(
      Array.from({ length: Math.min(left, 10) }, () =>
        client.call('tools/call', { server: 'echo', tool: 'echo', arguments: { words } }),
      ),
    )
}

const numbersIn = (text: string): readonly number[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { seq: number }).seq)

test('who follows the journal is told of as many of the past as asked for, and of each record once', async () => {
  await using at = await daemon(configOf({ echo: fixture('echo') }))
  await make(at.client, calls)
  const first = await at.client.call('audit/query', { limit: lines })
  expect(first.more).toBe(true)
  const child = at.start(['audit', 'tail', '--follow', '--lines', `${lines}`, '--json'])
  let said = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (said += text))
  await make(at.client, 50) // while the past is told
  await eventually(() => said !== '')
  await make(at.client, 50)
  const { seq: last } = (await at.client.call('audit/query', { limit: 1 })).head
  const numbers = await eventually(() => {
    const seen = numbersIn(said.slice(0, said.lastIndexOf('\n') + 1))
    return seen.at(-1) === last && seen
  })
  expect(numbers).toEqual(numbers.map((_, n) => last - numbers.length + 1 + n))
  expect(numbers.length).toBeGreaterThanOrEqual(lines)
  child.kill('SIGINT')
  await once(child, 'exit')
})

test('a daemon that answers with the same record again and again is told apart from one that has more', async () => {
  const record = {
    seq: 5,
    at: '',
    daemon: 'd-1',
    segment: 1,
    type: 'x',
    body: {},
    prev: null,
    hash: null,
    mac: null,
  }
  const answers: object[] = []
  await using own = await ownDaemon(({ params, reply }) => {
    answers.push(params)
    reply({ result: { records: [record], more: true, head: { seq: 9, hash: '' }, lacking: [] } })
  })
  await using at = await place()
  for (const more of [[], ['--follow']]) {
    const { status, stderr } = await at.run(['audit', 'tail', '--runtime', own.runtimeDir, ...more])
    expect({ status, stderr }).toMatchObject({
      status: 5,
      stderr: expect.stringContaining('(ERR_DAEMON_PROTOCOL)'),
    })
  }
  expect(answers).toHaveLength(4)
})
