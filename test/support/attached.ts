// A host's session with a server of a real daemon, that says exactly the lines it is given and keeps every line it hears.
import { join } from 'node:path'
import type { Place } from './daemon.ts'
import { RawCaller, type RawReply } from './raw-caller.ts'

/** Disposing ends the session. */
export interface AttachedHost extends AsyncDisposable {
  readonly lines: readonly string[]
  ask(method: string, params: object): Promise<RawReply>
  call(tool: string, args?: object): Promise<RawReply>
  /** All of them at once; the answers are in their order */
  callAll(tool: string, each: readonly object[]): Promise<readonly RawReply[]>
  tell(method: string, params?: object): void
  /** One line, with `$ID` for the next id */
  say(line: string): Promise<RawReply>
}

/** Attaches and introduces itself, in the last version that does. */
export async function attached(at: Place, server: string): Promise<AttachedHost> {
  const caller = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  const session = await caller.ask('session/attach', { server })
  if (session.error !== undefined) throw new Error(JSON.stringify(session.error))
  const clientInfo = { name: 'host', version: '1' }
  await caller.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  caller.tell('notifications/initialized')
  return {
    lines: caller.lines,
    ask: (method, params) => caller.ask(method, params),
    call: (tool, args = {}) => caller.ask('tools/call', { name: tool, arguments: args }),
    callAll: (tool, each) =>
      caller.askAll(
        'tools/call',
        each.map((args) => ({ name: tool, arguments: args })),
      ),
    tell: (method, params) => caller.tell(method, params),
    say: (line) => caller.say(line),
    async [Symbol.asyncDispose]() {
      caller[Symbol.dispose]()
    },
  }
}
