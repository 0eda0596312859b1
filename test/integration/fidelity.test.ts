// The same bytes, bare and through a session: what a server is sent, and what a host gets back.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { attach } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { fixture } from '../support/plain-launch.ts'
import { serverSettings } from '../support/server-settings.ts'
import { tempDir } from '../support/temp-dir.ts'

/** One thing that the host says, and the bytes with which the server answers it. */
interface Step {
  readonly say: string
  readonly reply: string
}

const told = (reply: string): string => `"@reply":"${Buffer.from(reply).toString('base64')}"`

const request = (id: string, method: string, params: string, reply: string): Step => ({
  say: `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params}${params === '' ? '' : ','}"_meta":{${told(reply)}}}}\n`,
  reply,
})

const call = (id: string, args: string, reply: string): Step =>
  request(id, 'tools/call', `"name":"t","arguments":${args}`, reply)

const result = (id: string, value: string): string => `{"jsonrpc":"2.0","id":${id},"result":${value}}\n`

const steps: readonly Step[] = [
  request(
    '0',
    'initialize',
    '"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{},"x.vendor":{"a":1}},"clientInfo":{"name":"h","version":"1"}',
    result(
      '0',
      '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"x.vendor":{}},"serverInfo":{"name":"raw","version":"1","x":1.0}}',
    ),
  ),
  { say: '{"jsonrpc":"2.0","method":"notifications/initialized"}\n', reply: '' },
  call(
    '1',
    '{"big":12345678901234567890,"one":1.0,"minus":-0,"exp":1e2}',
    result('1', '{"big":12345678901234567890,"one":1.0,"minus":-0,"e":1E+2}'),
  ),
  call(
    '2',
    '{"text":"\\u00e9\\ud83d\\ude00 é 😀 \\/"}',
    result('2', '{"text":"\\u00e9 \\ud83d\\ude00 é 😀","lone":"\\ud800"}'),
  ),
  call('3', '{"z":1,"a":2,"1":3,"0":4}', result('3', '{"z":1,"a":2,"1":3,"0":4}')),
  call('4', '{"__proto__":{"x":1},"constructor":2}', result('4', '{"__proto__":{"x":1},"constructor":2}')),
  { ...call('5', '{}', '{"id":5,"unknown":[1, 2 ,3],\t"result":{ },"jsonrpc":"2.0"}\n') },
  call(
    '6',
    '{}',
    '{"jsonrpc":"2.0","id":6,"error":{"code":1.5,"message":"no","data":null,"extra":{"b":1}}}\n',
  ),
  call('7.5', '{}', result('7.5', '{"float":"id"}')),
  call('1.0e1', '{}', result('10', '{"same":"value"}')),
  call('-0', '{}', result('0', '{}')),
  call('12345678901234567890', '{}', result('12345678901234567000', '{"rounded":true}')),
  call('"s\\u0074r"', '{}', result('"str"', '{"string":"id"}')),
  call('""', '{}', result('""', '{}')),
  call('"é"', '{}', result('"\\u00e9"', '{}')),
  call(
    '8',
    '{}',
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1.5,"progress":0.1}}\n${result('8', '{"structuredContent":[1],"content":[{"type":"new","x":{}}]}')}`,
  ),
  call('9', '{}', `${result('9', '{"a":1}').slice(0, -1)}\r\n`),
  { say: '{"jsonrpc":"2.0","id":0,"method":"ping"}\r\n', reply: '' },
  {
    say: '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0,"reason":"why"}}\n',
    reply: '',
  },
  {
    say: '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}\n',
    reply: '',
  },
  request(
    '20',
    'logging/setLevel',
    '"level":"debug"',
    `${result('20', '{}')}{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":{"big":1e400}}}\n`,
  ),
  request(
    '21',
    'completion/complete',
    '"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}',
    result('21', '{"completion":{"values":[],"total":0.0}}'),
  ),
  request(
    '22',
    'resources/list',
    '',
    result('22', '{"resources":[{"uri":"x:1","icons":[{"src":"a","x":1}]}]}'),
  ),
  request('23', 'resources/templates/list', '', result('23', '{"resourceTemplates":[]}')),
  request('24', 'resources/read', '"uri":"x:1"', result('24', '{"contents":[{"uri":"x:1","blob":"AA=="}]}')),
  request(
    '25',
    'resources/subscribe',
    '"uri":"x:1"',
    `${result('25', '{}')}{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}\n`,
  ),
  request('26', 'prompts/list', '', result('26', '{"prompts":[]}')),
  request('27', 'prompts/get', '"name":"p","arguments":{"a":"1"}', result('27', '{"messages":[]}')),
  request(
    '28',
    'tools/list',
    '"cursor":"c"',
    result(
      '28',
      '{ "tools" : [ {"name":"t","inputSchema":{},"unknown":1.0} , {"name":"u"} ] , "nextCursor":"d"}',
    ),
  ),
  request(
    '"29t"',
    'tools/call',
    '"name":"t","task":{"ttl":60000.0}',
    result('"29t"', '{"task":{"taskId":"k","status":"working","ttl":6.0e4}}'),
  ),
  request('29', 'tasks/get', '"taskId":"k"', result('29', '{"status":"working","n":1.0}')),
  request(
    '"29l"',
    'tasks/list',
    '',
    result('"29l"', '{"tasks":[{"taskId":"k","status":"working","n":1.0}]}'),
  ),
  call(
    '30',
    '{}',
    '{"jsonrpc":"2.0","id":"srv-1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":10.0}}\n',
  ),
  {
    say: `{"jsonrpc":"2.0","id":"srv-1","result":{"role":"assistant","x":1.0},"_":{${told(result('30', '{}'))}}}\n`,
    reply: result('30', '{}'),
  },
  call(
    '31',
    '{}',
    '{"jsonrpc":"2.0","id":1.0,"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}\n',
  ),
  {
    say: `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"n":1.0}},"_":{${told(result('31', '{}'))}}}\n`,
    reply: result('31', '{}'),
  },
  call('32', '{}', '{"jsonrpc":"2.0","id":2,"method":"ping"}\n'),
  {
    say: `{"jsonrpc":"2.0","id":2,"result":{},"_":{${told(result('32', '{}'))}}}\n`,
    reply: result('32', '{}'),
  },
  call('33', '{}', '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}\n'),
]

interface Heard {
  readonly server: string
  readonly host: string
}

const settings = (record: string, piece: number) =>
  serverSettings('raw-script.mjs', {
    args: [fixture('raw-script.mjs'), record, String(piece)],
    sampling: true,
    elicitation: { enabled: true, timeoutMs: 10_000, queue: 16 },
  })

async function bare(record: string, piece: number): Promise<Heard> {
  const { command, args } = settings(record, piece)
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  let heard = ''
  child.stdout.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')))
  await play(
    (bytes) => child.stdin.write(bytes),
    () => heard,
    0,
  )
  child.stdin.end()
  await once(child, 'close')
  return { server: await readFile(record, 'latin1'), host: heard }
}

async function through(record: string, piece: number): Promise<Heard> {
  await using host = await attach(settings(record, piece))
  await play(
    (bytes) => host.socket.write(bytes),
    () => host.received.toString('latin1'),
    piece,
  )
  host.socket.end()
  expect(await host.session.ended).toMatchObject({ status: 0 })
  return { server: await readFile(record, 'latin1'), host: host.received.toString('latin1') }
}

/** Says each step in pieces of that size (0 is all at once), and waits for its reply before the next. */
async function play(say: (bytes: Buffer) => void, heard: () => string, piece: number): Promise<void> {
  let expected = ''
  for (const step of steps) {
    const bytes = Buffer.from(step.say)
    for (let at = 0; at < bytes.length; at += piece || bytes.length)
      say(bytes.subarray(at, at + (piece || bytes.length)))
    expected += Buffer.from(step.reply).toString('latin1')
    await eventually(() => heard().length >= expected.length)
  }
}

test.each([0, 1, 7])(
  'server and host read the same bytes, bare and through a session, in pieces of %i',
  async (piece) => {
    await using dir = await tempDir()
    const plain = await bare(join(dir.path, 'bare'), piece)
    const relayed = await through(join(dir.path, 'through'), piece)
    expect(relayed.server).toBe(plain.server)
    expect(relayed.host.slice(0, plain.host.length)).toBe(plain.host)
    // A call that its server never answered is answered, to a host that closed its end and still reads.
    expect(JSON.parse(relayed.host.slice(plain.host.length))).toMatchObject({
      id: 33,
      error: { data: { code: 'ERR_SERVER_UNAVAILABLE', reason: 'the host closed its end' } },
    })
    expect(plain.host).toBe(steps.map(({ reply }) => Buffer.from(reply).toString('latin1')).join(''))
  },
)

test('a list that loses a tool keeps every other byte', async () => {
  await using dir = await tempDir()
  const server = {
    ...settings(join(dir.path, 'r'), 0),
    tools: { allow: [], deny: ['bad*'], readOnly: [] },
  }
  await using host = await attach(server)
  const first = request(
    '1',
    'tools/list',
    '',
    result(
      '1',
      '{ "tools" : [ {"name":"bad1"} , {"name":"\\u0067ood","x":1.0 } ,\t{"n":1,"name":"b\\u0061d"}, {"name":"also"} ] , "cacheScope":"public","big":12345678901234567890}',
    ),
  )
  host.send(first.say.trimEnd())
  await host.answer(1)
  expect(host.lines[0]).toBe(
    '{"jsonrpc":"2.0","id":1,"result":{ "tools" : [ {"name":"\\u0067ood","x":1.0 }, {"name":"also"} ] , "cacheScope":"private","big":12345678901234567890}}',
  )
})
