// `sallyport call SERVER TOOL`: one tool call through the daemon, with every control that a host's call has.
import type { Command } from 'commander'
import { SallyportError } from '../errors.ts'
import type { CallResult } from '../rpc/protocol.ts'
import { isJson } from '../lib/is-json.ts'
import { members } from '../lib/json-scan.ts'
import { parseJson } from '../lib/parse-json.ts'
import { RawJson } from '../lib/raw-json.ts'
import { visibleJsonText } from '../lib/visible-json.ts'
import { wholeNumber } from './number.ts'
import { hint, isDone, printJson, visibleLines } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface CallOptions extends ReachOptions {
  readonly args?: string
  readonly a?: readonly string[]
  readonly timeout?: number
}

/** How long a person at a terminal sees nothing */
const patientMs = 2000

const stillWaiting = (server: string, tool: string): string =>
  `still waiting for ${server} ${tool}; Ctrl-C takes the call back, sallyport approvals shows whether it waits for an operator`

export function registerCall(program: Command): void {
  reaching(program.command('call'))
    .description('call a tool and print what it answers')
    .argument('<server>')
    .argument('<tool>', 'the server’s own name for it')
    .option('--args <json>', 'arguments as one JSON object')
    .option('-a <key=value...>', 'one argument; the value is JSON where it reads as JSON, else text')
    .option('--timeout <ms>', 'wait shorter than the server’s call_ms', timeoutFrom)
    .action((server: string, tool: string, options: CallOptions) => {
      const given = argumentsOf(options)
      return reach(options, 'any', async ({ client, signal }) => {
        const timeout = options.timeout === undefined ? {} : { timeout_ms: options.timeout }
        const params = { server, tool, arguments: given, ...timeout }
        const told = setTimeout(() => process.stderr.isTTY && hint(stillWaiting(server, tool)), patientMs)
        const answer = await client
          .callText('tools/call', params, { signal })
          .finally(() => clearTimeout(told))
        const result = parseJson(answer.raw) as CallResult
        const { isTTY } = process.stdout
        isDone(`${server} ${tool} was called (${result.call_id})`)
        if (options.json === true)
          process.stdout.write(`${isTTY ? visibleJsonText(answer.raw) : answer.raw}\n`)
        else print(server, result)
        if (result.metadata.truncated) process.stderr.write(`${cutNotice(result)}\n`)
        if (result.type === 'error') process.exitCode = 1
      })
    })
}

/** Puts `--args` and `-a` together, each value as it was written; the same key in both, or twice, is refused. */
export function argumentsOf({ args, a = [] }: Pick<CallOptions, 'args' | 'a'>): RawJson {
  const result = new Map(args === undefined ? [] : membersOf(args))
  for (const pair of a) {
    const at = pair.indexOf('=')
    const key = pair.slice(0, at)
    if (at < 1) throw usage(`-a: got ${JSON.stringify(pair)}, expected key=value`)
    if (result.has(key)) throw usage(`-a: got ${JSON.stringify(key)} twice, expected each argument once`)
    const value = pair.slice(at + 1)
    result.set(key, isJson(value) ? onOneLine(value) : JSON.stringify(value))
  }
  return new RawJson(`{${[...result].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`)
}

// Numbers, order and escapes stay as they were written: what is called is what was asked for.
function membersOf(args: string): [string, string][] {
  if (!isJson(args) || !args.trimStart().startsWith('{'))
    throw usage(`--args: got ${args.slice(0, 80)}, expected a JSON object such as '{"path":"/workspace"}'`)
  const text = Buffer.from(onOneLine(args)).toString('latin1') // offsets are then byte offsets
  try {
    return members(text, 0, text.length, { unique: true }).map(({ key, start, end }) => [
      key,
      Buffer.from(text.slice(start, end), 'latin1').toString(),
    ])
  } catch (error) {
    throw usage(`--args: ${error instanceof Error ? error.message : String(error)}`)
  }
}

// A line feed in JSON stands between tokens only, where a space means the same.
function onOneLine(json: string): string {
  return json.replace(/[\r\n]/g, ' ').trim()
}

// Text of the answer as text, since that is what people read; everything else as JSON.
function print(server: string, { type, data, error_text }: CallResult): void {
  if (type === 'error') return printFailure(server, error_text ?? 'the tool failed')
  const content: unknown =
    typeof data === 'object' && data !== null ? Reflect.get(data, 'content') : undefined
  if (!Array.isArray(content)) return printJson(data)
  for (const item of content) {
    const text: unknown = Reflect.get(Object(item), 'text')
    if (typeof text === 'string') process.stdout.write(`${visibleLines(text, process.stdout)}\n`)
    else printJson(item)
  }
}

/** Each line says whose word it is: a server could say what Sallyport does where it refuses. */
function printFailure(server: string, text: string): void {
  const lines = visibleLines(text, process.stderr).split('\n')
  process.stderr.write(lines.map((line) => `${server}: ${line}\n`).join(''))
}

function cutNotice({ metadata: { output_path } }: CallResult): string {
  const whole =
    output_path === null ? 'the rest could not be kept' : `all of it, as JSON, is in ${output_path}`
  return `sallyport: this is only the beginning, as output.result_bytes says; ${whole}`
}

function timeoutFrom(text: string): number {
  const value = wholeNumber(text, 1)
  if (value === null)
    throw usage(`--timeout: got ${JSON.stringify(text)}, expected a whole number of ms from 1`)
  return value
}

function usage(message: string): SallyportError {
  return new SallyportError('ERR_USAGE', message)
}
