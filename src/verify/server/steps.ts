// What is said of each step of a real server's run: that it came to it, and what was answered.
import { lstatSync } from 'node:fs'
import { SallyportError } from '../../errors.ts'
import { holdsWithin } from '../../lib/deadline.ts'
import type { SandboxProcess } from '../../sandbox/driver.ts'
import { mountsOf } from '../../sandbox/spec.ts'
import { ampleMs } from '../lab/patience.ts'
import type { Inspection } from '../result.ts'
import type { Choice } from './choose-call.ts'
import { isRead, processesOf, type Read, type Unread } from './processes.ts'
import type { Reply } from './talk.ts'

/** The steps in their order; each is an inspection of that name, whether it was reached or not. */
export const steps = ['server.started', 'server.introduced', 'server.listed', 'server.called'] as const
type Step = (typeof steps)[number] | 'process.tree' | 'server.gone'

const about: Readonly<Record<Step, Pick<Inspection, 'protects' | 'expected'>>> = {
  'server.started': {
    protects: 'The server starts in its sandbox, through the launch of any.',
    expected: 'a process behind the gate',
  },
  'server.introduced': {
    protects: 'The server introduces itself, so that what follows is said of a server that works.',
    expected: 'an answer to initialize',
  },
  'server.listed': { protects: 'The server says what it can do.', expected: 'an answer to tools/list' },
  'server.called': { protects: 'The server answers a call that changes nothing.', expected: 'an answer' },
  'process.tree': {
    protects: 'The server is what was planned, and all that it starts stays below the sandbox’s PID 1.',
    expected: 'every process, as the host’s /proc shows it',
  },
  'server.gone': {
    protects: 'Nothing of the server is left when it has ended.',
    expected: 'no process, no group, no door',
  },
}

const inspection = (
  id: Step,
  verdict: Inspection['verdict'],
  observed: string,
  evidence: readonly string[] = [],
): Inspection => ({ id, ...about[id], observed, verdict, evidence })

const isError = (reply: Reply): reply is Extract<Reply, { code: number }> => 'code' in reply
const told = ({ code, message }: Extract<Reply, { code: number }>): string => `${code}: ${message}`
const asObject = (value: unknown): Readonly<Record<string, unknown>> => ({ ...(value as object) })
const methodNotFound = -32601

export const started = (process: SandboxProcess | null): Inspection =>
  process === null
    ? inspection('server.started', 'error', 'no process')
    : inspection('server.started', 'pass', `pid ${process.initPid} on the host`, [
        `argv: ${process.spec.program.argv.join(' ')}`,
        `uid ${process.spec.hostUid}, profile ${process.spec.profile}`,
      ])

export const introduced = (reply: Reply): Inspection => {
  if (isError(reply)) return inspection('server.introduced', 'fail', told(reply))
  const { serverInfo, protocolVersion, capabilities } = asObject(reply.result)
  const { name, version } = asObject(serverInfo)
  return inspection('server.introduced', 'pass', `${String(name)} ${String(version)}`, [
    `protocol ${String(protocolVersion)}`,
    `capabilities: ${Object.keys(asObject(capabilities)).join(', ') || 'none'}`,
  ])
}

/** A server without tools may say so by knowing no such method. */
export const toolsListed = (reply: Reply, listed: ReadonlyMap<string, unknown> | null): Inspection => {
  if (isError(reply) && reply.code !== methodNotFound) return inspection('server.listed', 'fail', told(reply))
  const all = [...(listed?.keys() ?? [])]
  const shown = isError(reply) ? [] : asObject(reply.result)['tools']
  const count = Array.isArray(shown) ? shown.length : 0
  return inspection('server.listed', 'pass', `${all.length} tools, of which policy shows ${count}`, [
    `tools: ${all.slice(0, 50).join(', ') || 'none'}`,
  ])
}

/** A tool that reports an error of its own has answered; a call that was refused was not made. */
export const called = ({ method, params, because }: Choice, reply: Reply): Inspection => {
  const { name } = asObject(params)
  const what = method === 'ping' ? 'ping' : `the tool ${String(name)}`
  const evidence = [`called: ${what}, since ${because}`]
  if (isError(reply))
    return method === 'ping' && reply.code === methodNotFound
      ? inspection('server.called', 'pass', `${what} answered: it knows no ping`, evidence)
      : inspection('server.called', 'error', `${what}: ${told(reply)}`, evidence)
  const failed = asObject(reply.result)['isError'] === true ? ', with an error of its own' : ''
  return inspection('server.called', 'pass', `${what} answered${failed}`, evidence)
}

/** What was not come to, each an error that says why, with what the server wrote to stderr. */
export const unreached = (
  reached: readonly Inspection[],
  why: string,
  complaints: readonly string[],
): readonly Inspection[] =>
  steps
    .filter((step) => !reached.some(({ id }) => id === step))
    .map((step) =>
      inspection(
        step,
        'error',
        why,
        complaints.map((line) => `stderr: ${line}`),
      ),
    )

/** Of all that is looked for in its processes, where nobody could say which they are. */
export const unseen = ({ unread }: Unread): Inspection =>
  inspection('process.tree', 'error', `its processes could not be looked at (${unread})`)

/** A sandbox that was launched, with the folders of its control groups. */
export interface Launched {
  readonly process: SandboxProcess
  readonly groups: Read<readonly string[]>
}

/** Looks for what a server could leave, calls' own sandboxes with it: processes, control groups, the socket of a door. */
export const left = async (
  launched: readonly Launched[],
  ended: { readonly status: number; readonly reason: string | null } | SallyportError,
): Promise<Inspection> => {
  if (launched.length === 0) return inspection('server.gone', 'error', 'it never started')
  if (ended instanceof SallyportError) return inspection('server.gone', 'error', ended.message)
  const hidden = launched.flatMap(({ groups }) => (isRead(groups) ? [] : [groups.unread]))
  if (hidden[0] !== undefined)
    return inspection('server.gone', 'error', `which control groups it had could not be read (${hidden[0]})`)
  const files = launched.flatMap(({ process: { spec }, groups }) => [
    ...(isRead(groups) ? groups : []),
    ...mountsOf(spec)
      .filter(({ origin }) => origin === 'supervisor')
      .map(({ source }) => source),
  ])
  const remains = (): readonly string[] => [
    ...launched.flatMap(({ process: { initPid } }) =>
      processesOf(initPid).map(({ pid, name }) => `process ${pid} ${name}`),
    ),
    // What may not be looked at may be there: that throws.
    ...files.filter((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined),
  ]
  const still = await holdsWithin(() => remains().length === 0, ampleMs).then(remains, (error: unknown) =>
    inspection('server.gone', 'error', `what is left of it could not be seen: ${String(error)}`),
  )
  if ('verdict' in still) return still
  const how = ended.reason ?? `status ${ended.status}`
  return still.length === 0
    ? inspection(
        'server.gone',
        'pass',
        `nothing is left; it ended with ${how}`,
        files.map((path) => `gone: ${path}`),
      )
    : inspection('server.gone', 'error', `there ${ampleMs} ms after its end: ${still.join(', ')}`)
}
