// What lists of prompts, resources and templates show: nothing that could never be had, and all else byte for byte.
import { expect, test } from 'vitest'
import type { Rule, ServerSettings } from '../../src/schema/settings.ts'
import { filterList } from '../../src/supervisor/lanes/listing.ts'
import { readEnvelope } from '../../src/supervisor/message/envelope.ts'
import { attach } from '../support/attach.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'

const deny = (permission: string, where: Rule['where'] = {}): Rule => ({
  permission,
  action: 'deny',
  where,
  origin: 'rules[0]',
})
const allow: Rule = { permission: 'mcp:*:*', action: 'allow', where: {}, origin: 'rules[1]' }

const introduction = '{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-11-25"}}\n'
const initialize = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","_meta":{"@reply":"${Buffer.from(introduction).toString('base64')}"}}}`

/** The line that the host gets where the server answers its question with this result, and ours with `own`. */
async function listed(
  method: string,
  result: string,
  rules: readonly Rule[],
  {
    era = '2026-07-28',
    own = result,
    ...server
  }: Partial<ServerSettings> & { readonly era?: string; readonly own?: string } = {},
): Promise<string | undefined> {
  const args = [fixture('raw-script.mjs'), '', '0', method, own]
  await using host = await attach(serverSettings('', { args, ...server }), { rules: [...rules, allow] })
  if (era === '2025-11-25') host.send(initialize)
  const reply = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}\n`).toString('base64')
  host.send(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"_meta":{"@reply":"${reply}"}}}`)
  await host.answer(1)
  return host.lines.at(-1)?.slice('{"jsonrpc":"2.0","id":1,"result":'.length, -1)
}

const prompts =
  '{ "prompts" : [ {"name":"secret_a","x":1.0} ,\t{"name":"\\u006fpen"} , {"name":"secret_b"} ] , "cacheScope":"public","n":1e400}'
const resources = '{"resources":[{"uri":"db://secret/a"},{"uri":"db://open/a","big":12345678901234567890}]}'
const templates =
  '{"resourceTemplates":[{"uriTemplate":"db://secret/{table}"},{"uriTemplate":"db://{schema}/a"},{"uriTemplate":"db://secret{+rest}"}]}'

test.each(['2025-11-25', '2026-07-28'])(
  'in %s a prompt that is denied by its name is not listed',
  async (era) => {
    const rules = [deny('mcp:fixture:prompts/get', { '/name': 'secret_*' })]
    expect(await listed('prompts/list', prompts, rules, { era })).toBe(
      '{ "prompts" : [ {"name":"\\u006fpen"} ] , "cacheScope":"private","n":1e400}',
    )
  },
)

test('a resource that is denied by its address is not listed', async () => {
  const rules = [deny('mcp:*:resources/*', { '/uri': 'db://secret/**' })]
  expect(await listed('resources/list', resources, rules)).toBe(
    '{"resources":[{"uri":"db://open/a","big":12345678901234567890}]}',
  )
})

test('a template is not listed when nothing that it can make may be read', async () => {
  const rules = [deny('mcp:fixture:resources/read', { '/uri': 'db://secret/**' })]
  expect(await listed('resources/templates/list', templates, rules)).toBe(
    '{"resourceTemplates":[{"uriTemplate":"db://{schema}/a"},{"uriTemplate":"db://secret{+rest}"}]}',
  )
})

test.each([
  ['prompts/list', prompts, 'prompts/get', '{ "prompts" : [] , "cacheScope":"private","n":1e400}'],
  ['resources/list', resources, 'resources/read', '{"resources":[]}'],
  ['resources/templates/list', templates, 'resources/read', '{"resourceTemplates":[]}'],
])('%s is empty where all of it is denied', async (method, result, subject, empty) => {
  expect(await listed(method, result, [deny(`mcp:fixture:${subject}`)])).toBe(empty)
  const sandboxed = { trust: 'sandboxed', tools: { allow: ['t'], deny: [], readOnly: [] } } as const
  expect(await listed(method, result, [], sandboxed)).toBe(empty)
})

test.each([
  ['no rule is about them', []],
  ['a rule asks', [{ ...deny('mcp:fixture:prompts/get'), action: 'ask' as const }]],
  ['a denial depends on the arguments', [deny('mcp:fixture:prompts/get', { '/arguments/a': '*' })]],
  ['a denial depends on more than the name', [deny('mcp:*:*', { '/name': '*', '/arguments/a': '*' })]],
  ['a denial is of another method', [deny('mcp:fixture:resources/read')]],
  ['a denial is of another server', [deny('mcp:other:prompts/get')]],
  ['a denial names none of them', [deny('mcp:fixture:prompts/get', { '/name': 'other' })]],
])('where %s, the answer is the server’s, byte for byte', async (_why, rules) => {
  expect(await listed('prompts/list', prompts, rules)).toBe(prompts)
})

test.each([
  '{"name":"open","name":"secret"}',
  '{"name":"open","Name":"secret"}',
  '{"name":1}',
  '{}',
  '"secret"',
])('where some are denied, %s is not listed, which readers could take for one', async (entry) => {
  const rules = [deny('mcp:fixture:prompts/get', { '/name': 'secret' })]
  expect(await listed('prompts/list', `{"prompts":[${entry},{"name":"open"}]}`, rules)).toBe(
    '{"prompts":[{"name":"open"}]}',
  )
})

test('a list that stands twice is an error where some of it is denied', async () => {
  const rules = [deny('mcp:fixture:prompts/get', { '/name': 'secret' })]
  expect(await listed('prompts/list', '{"prompts":[],"prompts":[{"name":"secret"}]}', rules)).toContain(
    'ERR_MESSAGE_AMBIGUOUS',
  )
})

test.each([['prompts/list', '{"__proto__":{"prompts":[{"name":"secret"}]},"prompts":[]}']])(
  'a list of a prototype, which a reader that copies objects finds, is an error: %s',
  async (method, result) => {
    const line = await listed(method, result, [])
    expect(line).toContain('ERR_MESSAGE_AMBIGUOUS')
    expect(line).not.toContain('secret')
  },
)

test.each([
  ['prompts/list', '{"prompts":{"0":{"name":"secret"}}}'],
  ['resources/templates/list', '{"resourceTemplates":"secret"}'],
  ['tasks/list', '{"tasks":{"0":{"taskId":"secret"}}}'],
])('something else in the place of a list is an error: %s', async (method, result) => {
  const line = await listed(method, result, [])
  expect(line).toContain('ERR_SERVER_PROTOCOL')
  expect(line).not.toContain('secret')
})

test('a prompt that the server listed to its host alone is not listed', async () => {
  const own = '{"prompts":[{"name":"open"}]}'
  expect(await listed('prompts/list', '{"prompts":[{"name":"new"},{"name":"open"}]}', [], { own })).toBe(own)
})

// Looked for each entry's place among all of them, such a list kept the daemon from everybody for a minute and a half.
test('a list of very many entries is cut in one pass, and of more than are read nothing is shown', () => {
  const shows = (name: string | null): boolean => name === 'o:x'
  const cutOf = (open: string): ReturnType<typeof filterList> => {
    const text = `{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"s:x"},${open}{"uri":"s:y"} ]}}`
    const envelope = readEnvelope(text, 0, text.length)
    if (envelope.kind !== 'response' || envelope.result === null) throw new Error('that is no answer')
    return filterList('resources/list', text, { start: 0, end: text.length }, envelope.result, shows)
  }
  const open = '{"uri":"o:x"}, '.repeat(80_000)
  const cut = cutOf(open)
  const kept = open.slice(0, -', '.length)
  expect(cut.text).toBe(`{"jsonrpc":"2.0","id":1,"result":{"resources":[${kept} ]}}`)
  expect(cut.hidden).toBe(2)
  expect(() => cutOf(open.repeat(4))).toThrow(expect.objectContaining({ code: 'ERR_RESULT_TOO_LARGE' }))
})
