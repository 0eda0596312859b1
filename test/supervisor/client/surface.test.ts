// Lists are asked for page by page, up to so many pages and so much text: a server that talks on is not listened to.
import { expect, test } from 'vitest'
import { RawJson } from '../../../src/lib/raw-json.ts'
import { meet } from '../../../src/supervisor/client/handshake.ts'
import { Compared, entriesIn, readSurface } from '../../../src/supervisor/client/surface.ts'
import { readPage } from '../../../src/supervisor/message/read-answer.ts'
import { serverSettings } from '../../support/server-settings.ts'
import { turns } from '../../support/turns.ts'

/** A server whose `prompts` never end, in pages of that many characters. */
function endless(characters: number) {
  let asked = 0
  const request = async (method: string) => {
    asked += 1
    const prompts = [{ name: `p${asked}`, description: 'x'.repeat(characters) }]
    const page = { prompts, nextCursor: `c${asked}` }
    const said = JSON.stringify(method === 'prompts/list' ? page : {})
    return { kind: 'result' as const, result: new RawJson(said), said }
  }
  const introduction = { capabilities: { prompts: {} }, instructions: null, version: null }
  const read = readSurface(request, introduction, 1000)
  return { asked: () => asked, read }
}

test('a list that does not end is a hundred pages', async () => {
  const server = endless(10)
  const surface = await server.read
  expect(surface.rest).toMatchObject({ prompts: { length: 100 } })
  expect(server.asked()).toBe(100)
  // Of what is behind them nobody knows whether it was there.
  expect([...surface.cut]).toEqual(['prompts/list'])
  expect(new Compared(surface).lacks('prompts/list', '{"name":"p101"}')).toBe(false)
  expect(new Compared(surface).lacks('resources/templates/list', '{"name":"p101"}')).toBe(true)
})

test('a list that is too long is none, and what it was asked for is not known', async () => {
  const server = endless(3_000_000)
  await expect(server.read).rejects.toMatchObject({ code: 'ERR_RESULT_TOO_LARGE' })
  expect(server.asked()).toBe(3)
})

test('a list that is refused is told in one short line, whatever the server says', async () => {
  const message = `no\u001b[31m\nsallyport: all is well${'x'.repeat(5000)}`
  const request = async () => ({ kind: 'error' as const, code: -32603, message, raw: '' })
  const read = readSurface(request, { capabilities: { tools: {} }, instructions: null, version: null }, 100)
  await expect(read).rejects.toMatchObject({
    message: expect.stringMatching(
      /^tools\/list failed: no \[31m sallyport: all is wellx{1,200} \(-32603\)$/,
    ),
  })
})

test.each([
  ['a list', (fill: string) => ({ tools: `{"tools":${fill}}` })],
  ['what stands beside a list', (fill: string) => ({ tools: `{"tools":[],"more":${fill}}` })],
  ['what a tool is', (fill: string) => ({ tools: `{"tools":[{"name":"t","inputSchema":${fill}}]}` })],
] as const)('%s of more keys and values than a host may send is not read', async (_, answer) => {
  const said = answer(`[${'{},'.repeat(250_000)}{}]`).tools
  const request = async () => ({ kind: 'result' as const, result: new RawJson(said), said })
  const introduction = { capabilities: { tools: {} }, instructions: null, version: null }
  await expect(readSurface(request, introduction, 100)).rejects.toMatchObject({ code: 'ERR_SERVER_PROTOCOL' })
})

test('nor is such a list compared with what was accepted: it is what nobody accepted', () => {
  const long = `{"prompts":[${'{},'.repeat(250_000)}{}]}`
  expect(entriesIn('prompts/list', long)).toEqual(['prompts/list: more than is read'])
})

test('nor such an introduction', async () => {
  const raw = `{"protocolVersion":"2025-06-18","more":[${'{},'.repeat(250_000)}{}]}`
  const request = async () => ({ kind: 'result' as const, result: new RawJson(raw), said: raw })
  const patience = { timeoutMs: 10_000, signal: new AbortController().signal }
  await expect(meet(serverSettings('echo.mjs'), request, null, patience)).rejects.toMatchObject({
    code: 'ERR_SERVER_PROTOCOL',
  })
})

test('a long page is read in turns of its own, to where the next one begins', async () => {
  const listed = Array.from({ length: 40 }, (_, n) => `{"name":"é${n}","x":"${'y'.repeat(100_000)}"}`)
  const seen = turns()
  const page = await readPage('tools/list', `{"tools":[${listed.join(' , ')}],"nextCursor":"ü"}`, 'tools')
  seen.stop()
  expect(seen.count()).toBeGreaterThanOrEqual(2)
  expect(page).toEqual({ listed, nextCursor: 'ü' })
})

test.each([
  ['{"tools":[1, {} ,"a"]}', ['1', '{}', '"a"'], null],
  ['{"tools":[],"nextCursor":7}', [], 7],
  ['{"tools":[],"tools":[1],"nextCursor":"a","nextCursor":"b"}', null, 'b'],
  ['{"tools":{}}', null, null],
  ['{"tools":[1],"Tools":[2]}', null, null],
  ['{"\u0054ools":[2],"tools":[1],"nextCursor":"a"}', null, 'a'],
  ['{"tools":[1],"tools\\u0000":[2]}', null, null],
  ['{"tools":[1],"__proto__":{"tools":[2]}}', null, null],
  ['{"Tools":[1]}', null, null],
  ['{"tools":[1],"tool":[2],"_meta":{"Tools":[3]}}', ['1'], null],
  ['[]', null, null],
])('of a page as %s', async (json, listed, nextCursor) => {
  expect(await readPage('tools/list', json, 'tools')).toEqual({ listed, nextCursor })
})

test('what nobody can look at is no tool, and is said to be why', async () => {
  const tools = [
    `{"name":"long","x":"${'y'.repeat(1_600_000)}"}`,
    '{"name":"twice","x":1,"\\u0078":2}',
    '{"name":"one","name":"other"}',
    '{"name":"same"}',
    '{"name":"same","x":1}',
    '{"name":"short"}',
  ]
  const raw = `{"tools":[${tools.join(',')}]}`
  const request = async () => ({ kind: 'result' as const, result: new RawJson(raw), said: raw })
  const introduction = { capabilities: { tools: {} }, instructions: null, version: null }
  const read = await readSurface(request, introduction, 100)
  expect(Object.fromEntries(read.tools)).toEqual({
    long: 'it is longer than 1572864 characters',
    twice: 'it says a key twice',
    one: 'it says a key twice',
    other: 'it says a key twice',
    same: 'its name is another tool’s too',
    short: { name: 'short' },
  })
})
