// A value that is taken out of events and records leaves them what they are: nobody ends a daemon by how a secret is written.
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fixture, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { hearing } from '../support/following.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { reachingPlace, recordsOf } from '../support/reaching-out.ts'

/** One that begins with a letter that JSON has an escape of, as tokens of npm and others do */
const token = 'npm_0123456789abcdefghij'
/** A line break, and the rest of it: JSON writes the two as a backslash and the value */
const alike = `a line\n${token.slice(1)}`

test('whoever knows a secret, host or server, ends no daemon by writing what JSON makes look like it', async () => {
  const entry = fixture('raw-script', {
    profile: 'open',
    credentials: [{ use: 'npm', inject: 'meta', as: 'KEY' }],
  })
  const ceiling = { allow: [], credentials: ['meta'] }
  const sources = { credentials: { npm: { env: 'TEST_TOKEN' } } }
  await using at = await reachingPlace({ scripted: entry }, ceiling, sources)
  const { process: child, client } = await serve(at, { TEST_TOKEN: token })
  await using _client = client
  await using told = await hearing(client)
  using session = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await session.ask('session/attach', { server: 'scripted' })
  const call = (...lines: string[]): ReturnType<RawCaller['ask']> => {
    const reply = Buffer.from(lines.map((line) => `${line}\n`).join('')).toString('base64')
    return session.ask('tools/call', { name: 't', _meta: { '@reply': reply } })
  }
  const hello = `{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`
  await session.ask('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'h', version: '1' },
    _meta: { '@reply': Buffer.from(`${hello}\n`).toString('base64') },
  })
  session.tell('notifications/initialized')
  await call('{"jsonrpc":"2.0","id":3,"result":{"content":[]}}') // its secret is known from here on

  // The server, in an escape that holds no letter of the secret; then the host.
  const asked = JSON.stringify({ jsonrpc: '2.0', id: 'x', method: alike }).replace('\\n', '\\u000a')
  await call(asked, '{"jsonrpc":"2.0","id":4,"result":{"content":[]}}')
  await session.ask(JSON.stringify(alike).slice(1, -1), {})
  await session.ask('tools/call', { name: alike, arguments: {} })
  await eventually(() => told.events.filter((event) => JSON.stringify(event).includes('a line')).length >= 3)
  expect(child.exitCode).toBeNull()
  const denied = recordsOf(at).filter(({ type }) => type === 'call.denied')
  expect(denied.map(({ body }) => body['subject'])).toEqual([alike])
})
