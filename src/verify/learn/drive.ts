// What makes a server work while it is learned: a script of calls, a program, a person's own host, or nobody.
import { spawn } from 'node:child_process'
import { access, constants, readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Duplex, PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { onNamed } from '../../config/named-file.ts'
import { SallyportError } from '../../errors.ts'
import { counted } from '../../lib/counted.ts'
import { within } from '../../lib/deadline.ts'
import { LineSplitter } from '../../lib/lines.ts'
import { packageVersion } from '../../lib/version.ts'
import type { SandboxProcess } from '../../sandbox/driver.ts'
import { type Answer, feed, lineBytes, type Message, parseMessage, Talk } from './talk.ts'

/** One way to make a server work. Run again it does the same, but for what the server says otherwise. */
export interface Drive {
  /** What it is, for people */
  readonly what: string
  /** Text of it in which paths may stand */
  readonly texts: readonly string[]
  run(process: SandboxProcess, signal: AbortSignal): Promise<readonly Answer[]>
}

const programMs = 120_000
/** Most that is kept of what a host says in one session, bytes */
const recordedBytes = 16 * 1024 * 1024

const hello: readonly Message[] = [
  {
    jsonrpc: '2.0',
    id: 'learn-initialize',
    method: 'initialize',
    params: {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'sallyport-learn', version: packageVersion() },
    },
  },
  { jsonrpc: '2.0', method: 'notifications/initialized' },
  { jsonrpc: '2.0', id: 'learn-list', method: 'tools/list', params: {} },
]

/** Introduces itself, lists the tools, and calls those that say that they only read and take no argument. */
export const briefDrive: Drive = {
  what: 'an introduction, a listing, and the tools that only read and need no argument',
  texts: [],
  async run(process, signal) {
    const talk = new Talk(process)
    const answers = await sayAll(talk, hello, signal)
    for (const [index, name] of harmless(answers.at(-1)?.result).entries()) {
      const params = { name, arguments: {} }
      answers.push(await talk.ask({ jsonrpc: '2.0', id: index, method: 'tools/call', params }, signal))
    }
    return answers
  },
}

/** Reads a file: a program that anybody may execute drives by itself, else each line is a call of a tool. */
export const readDrive = async (file: string): Promise<Drive> => {
  const path = resolve(file)
  const named = {
    path,
    as: `--drive ${file}`,
    access: 'read',
    code: 'ERR_USAGE',
    mend: 'name a file of calls, a line each, or a program that speaks MCP',
  } as const
  const text = await onNamed(named, () => readFile(path, 'utf8'))
  const isProgram = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
  return isProgram ? programDrive(path) : scriptDrive(path, text)
}

const scriptDrive = (path: string, text: string): Drive => {
  const calls = text
    .split('\n')
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== '' && !line.startsWith('#'))
    .map(({ line, number }): Message => {
      const call = parseMessage(line)
      const tool = call?.['tool']
      if (call === null || typeof tool !== 'string')
        throw new SallyportError(
          'ERR_USAGE',
          `${path}:${number}: got ${JSON.stringify(line.slice(0, 80))}, expected a call such as {"tool": "read_file", "arguments": {"path": "/x"}}`,
          { file: path, line: number },
        )
      const params = { name: tool, arguments: call['arguments'] ?? {} }
      return { jsonrpc: '2.0', id: number, method: 'tools/call', params }
    })
  return messagesDrive(`the ${counted(calls.length, 'call')} of ${path}`, [...hello, ...calls])
}

/** Says these messages in their order, each request once the one before was answered. */
export const messagesDrive = (what: string, messages: readonly Message[]): Drive => ({
  what,
  texts: messages.flatMap(({ params }) => stringsOf(params)),
  run: (process, signal) => {
    const replies = messages.filter(({ method }) => method === undefined)
    const talk = new Talk(process, new Map(replies.map((reply) => [JSON.stringify(reply['id']), reply])))
    return sayAll(talk, messages, signal)
  },
})

const sayAll = async (talk: Talk, messages: readonly Message[], signal: AbortSignal): Promise<Answer[]> => {
  const answers: Answer[] = []
  for (const message of messages) {
    if (message['method'] === undefined) continue
    if (message['id'] === undefined) talk.say(message)
    else answers.push(await talk.ask(message, signal))
    // Without an answer to its introduction there is nobody to talk to.
    if (answers.at(-1)?.outcome === 'none') break
  }
  return answers
}

/** A program whose stdin and stdout are the server's; what it exits with is all that is known of it. */
const programDrive = (path: string): Drive => ({
  what: `the program ${path}`,
  texts: [],
  async run(process, signal) {
    const child = spawn(path, [], { stdio: ['pipe', 'pipe', 'inherit'], signal })
    const exit = Promise.withResolvers<number | null>()
    child.once('close', (code) => exit.resolve(code)).once('error', () => exit.resolve(null))
    void feed(child.stdout, process)
    void pipeline(process.stdout, child.stdin).catch(() => undefined)
    const code = await within(exit.promise, programMs, () => new Error('late'), signal).catch(() => null)
    if (code === null) child.kill('SIGKILL')
    const outcome = code === 0 ? 'result' : 'error'
    return [{ to: path, outcome, digest: '', result: null }]
  },
})

/** A person's host on a stream: every byte passes as it is, and what the host says is kept for later. */
export const hostDrive = (host: Duplex): Drive & { recorded(): Drive } => {
  const said: Message[] = []
  let bytes = 0
  return {
    what: 'your own host',
    texts: [],
    recorded: () => messagesDrive('what your host said', said),
    async run(process) {
      const lines = new LineSplitter(lineBytes, {
        line: (chunk, _text, start, end) => {
          const message = parseMessage(chunk.toString('utf8', start, end))
          bytes += end - start
          if (message !== null && bytes <= recordedBytes) said.push(message)
        },
        overlong: () => undefined,
        overlongEnd: () => undefined,
      })
      host.on('data', (chunk: Buffer) => lines.push(chunk))
      void pipeline(process.stdout, host, { end: false }).catch(() => undefined)
      // Through a stream of its own: what is fed ends with a server that reads no more, and the host's stdout with it.
      await Promise.race([feed(host.pipe(new PassThrough()), process), process.ended])
      return []
    },
  }
}

/** Tools that claim to change nothing and require nothing: what they claim is believed only since they are confined. */
const harmless = (listing: unknown): readonly string[] => {
  const tools = (listing as { tools?: unknown } | null)?.tools
  if (!Array.isArray(tools)) return []
  return (tools as unknown[]).flatMap((tool) => {
    if (typeof tool !== 'object' || tool === null) return []
    const { name, annotations, inputSchema } = tool as Readonly<
      Record<string, Record<string, unknown> | string>
    >
    const reads = typeof annotations === 'object' && annotations?.['readOnlyHint'] === true
    const required = typeof inputSchema === 'object' ? inputSchema['required'] : undefined
    return typeof name === 'string' && reads && !(Array.isArray(required) && required.length > 0)
      ? [name]
      : []
  })
}

const stringsOf = (value: unknown): readonly string[] => {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(stringsOf)
}
