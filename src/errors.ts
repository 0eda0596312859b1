// Every way to fail that a caller can see: code, exit status, JSON-RPC code, MP failure, retryable.
import { clip } from './lib/clip.ts'
import { isShortage } from './lib/missing.ts'
import { StacklessError } from './lib/stackless-error.ts'

interface Entry {
  /** Exit status of the CLI */
  readonly exit: number
  /** JSON-RPC code; ours are positive, those of JSON-RPC and MCP stay what these say */
  readonly rpc: number
  /** MP-FH id of the failure table, where one applies */
  readonly failure: `MP-FH-0${'01' | '02' | '03' | '04' | '05' | '06' | '07' | '08' | '09' | '10'}` | null
  readonly retryable: boolean
  /** One sentence for docs/errors.md */
  readonly meaning: string
}

const entry = (
  exit: number,
  rpc: number,
  meaning: string,
  more: Partial<Pick<Entry, 'failure' | 'retryable'>> = {},
): Entry => ({ exit, rpc, meaning, failure: more.failure ?? null, retryable: more.retryable ?? false })

/** The catalogue. Codes are never reused; docs/errors.md lists the same rows, and a test holds them together. */
// oxfmt-ignore
export const catalogue = {
  ERR_INTERNAL: entry(1, 1000, 'Sallyport itself failed in a way that it did not foresee.'),
  ERR_USAGE: entry(7, 1001, 'The command line is not one that the verb takes.'),
  ERR_CONFIG_NOT_FOUND: entry(7, 1010, 'No configuration file was found where one is needed, or a file that was named is not there or cannot be read.'),
  ERR_CONFIG_SYNTAX: entry(7, 1011, 'A configuration or profile file is not valid YAML or JSON.'),
  ERR_CONFIG_INVALID: entry(7, 1012, 'A configuration file holds a key or a value that its schema refuses.'),
  ERR_CONFIG_UNSAFE: entry(7, 1013, 'A configuration or profile file can be written by somebody who must not.'),
  ERR_CONFIG_VARIABLE: entry(7, 1014, 'A variable that the configuration names is unset.'),
  ERR_CONFIG_SCOPE: entry(7, 1015, 'A project file asks for something that only the operator may grant.'),
  ERR_CONFIG_RESTART: entry(7, 1016, 'A reload found a setting changed that a running daemon cannot change.'),
  ERR_PROFILE_UNKNOWN: entry(8, 1020, 'No profile has that name.'),
  ERR_PROFILE_INVALID: entry(7, 1021, 'A profile holds a key or a value that its schema refuses.'),
  ERR_PROFILE_WIDENS: entry(7, 1022, 'A profile grants more than the one it extends without saying `widens: true`.'),
  ERR_PROFILE_EXCEEDED: entry(7, 1023, 'A server asks for more than its profile allows.'),
  ERR_COMMAND_NOT_ALLOWED: entry(2, 1030, 'The command is not in `allowed_commands`, or is written as a path.'),
  ERR_COMMAND_NOT_FOUND: entry(8, 1031, 'The allowed command is not in `command_path`, or its registered file is gone.'),
  ERR_COMMAND_UNSAFE: entry(2, 1032, 'The command’s file or a folder above it can be written by an untrusted user.'),
  ERR_COMMAND_CHANGED: entry(2, 1033, 'The command’s file is not the one that was registered.', { failure: 'MP-FH-009' }),
  ERR_ARGUMENT_REFUSED: entry(2, 1034, 'An argument would make an interpreter or package runner run code of the caller’s.'),
  ERR_PACKAGE_CHANGED: entry(2, 1035, 'The code of a server is not the code that was registered.', { failure: 'MP-FH-009' }),
  ERR_PACKAGE_UNSAFE: entry(2, 1036, 'A server’s code lies in a writable mount or can be written by an untrusted user.'),
  ERR_ENVIRONMENT_REFUSED: entry(7, 1037, 'A variable of a family that loads code or carries secrets was configured.'),
  ERR_MOUNT_REFUSED: entry(7, 1038, 'A mount is missing, overlaps a protected path, or cannot be reached by the sandbox’s user.'),
  ERR_SANDBOX_UNENFORCEABLE: entry(1, 1040, 'This machine or this version cannot enforce a control that the profile asks for.', { failure: 'MP-FH-007' }),
  ERR_SANDBOX_SETUP: entry(1, 1041, 'The sandbox could not be built; nothing of the server ran.', { failure: 'MP-FH-007', retryable: true }),
  ERR_SANDBOX_EXEC: entry(1, 1042, 'The sandbox stands, but the server’s program could not be executed in it.', { failure: 'MP-FH-001' }),
  ERR_SERVER_NOT_FOUND: entry(8, 1050, 'No server of that name is registered for the caller.'),
  ERR_SERVER_UNAVAILABLE: entry(1, 1051, 'The server is down, in backoff, failed or quarantined.', { failure: 'MP-FH-001', retryable: true }),
  ERR_SERVER_DISABLED: entry(8, 1052, 'The server is disabled, or its tags do not name this deployment mode.'),
  ERR_SERVER_PROTOCOL: entry(1, 1053, 'The server wrote something to stdout that is not MCP.', { failure: 'MP-FH-001' }),
  ERR_INITIALIZE_TIMEOUT: entry(1, 1054, 'The server did not answer the handshake in time.', { failure: 'MP-FH-001', retryable: true }),
  ERR_CALL_TIMEOUT: entry(1, 1055, 'The server did not answer the call in time.', { failure: 'MP-FH-004', retryable: true }),
  ERR_CALL_CANCELLED: entry(3, 1056, 'The caller cancelled the call.'),
  ERR_RESULT_TOO_LARGE: entry(1, 1057, 'The server’s line is longer than `output.line_bytes`, or a governed answer in a session than `output.result_bytes`.'),
  ERR_ERA_UNSUPPORTED: entry(7, 1058, 'The process of the server is shared, and the server does not speak the stateless era that this needs.'),
  ERR_VERSION_UNSUPPORTED: entry(7, -32022, 'The process of the server is shared, and the request is not of the protocol version that this needs.'),
  ERR_TOOL_NOT_FOUND: entry(8, 1060, 'The server has no such tool, or does not expose it.'),
  ERR_TOOL_FAILED: entry(1, 1061, 'The tool ran and said that it failed.'),
  ERR_POLICY_DENIED: entry(2, 1062, 'A rule, the server’s trust or its tool list denies the call.'),
  ERR_APPROVAL_UNAVAILABLE: entry(2, 1063, 'The rule says ask, and nobody can be asked, or what was asked about was accepted anew meanwhile: a denial.'),
  ERR_APPROVAL_DENIED: entry(2, 1084, 'An operator was asked, and said no.'),
  ERR_APPROVAL_TIMEOUT: entry(2, 1085, 'An operator was asked, and did not answer in time.', { retryable: true }),
  ERR_ARGUMENTS_INVALID: entry(7, 1086, 'The arguments are not what the tool’s accepted schema says.'),
  ERR_DECLARATION_MISSING: entry(2, 1087, 'The tool’s declaration was not accepted yet.', { failure: 'MP-FH-002' }),
  ERR_DECLARATION_MISMATCH: entry(2, 1088, 'The tool is not the one that was accepted.', { failure: 'MP-FH-003' }),
  ERR_SURFACE_UNGOVERNED: entry(2, 1089, 'The server lists a tool that nobody declared.', { failure: 'MP-FH-005' }),
  ERR_PERMIT_REFUSED: entry(2, 1090, 'The permit failed a check at the boundary.', { failure: 'MP-FH-006' }),
  ERR_IDENTITY_CHANGED: entry(2, 1092, 'The server is another version or says that it is, is other code, or is started with another command or other arguments than the one that was accepted.', { failure: 'MP-FH-009' }),
  ERR_APPROVAL_NOT_FOUND: entry(8, 1093, 'No question of that id waits, and no approval of that id stands.'),
  ERR_PERMIT_NOT_FOUND: entry(8, 1094, 'No permit of that id lives.'),
  ERR_HOLD_NOT_FOUND: entry(8, 1095, 'No hold and no quarantine has that name.'),
  ERR_HOLD_EXISTS: entry(7, 1112, 'Another hold has that name.'),
  ERR_RECORD_NOT_FOUND: entry(8, 1098, 'The journal has no such record, or there is no journal.'),
  ERR_OUTPUT_NOT_FOUND: entry(8, 1111, 'Nothing is kept of a long result of that call, or not for the caller.'),
  ERR_TASK_NOT_FOUND: entry(8, 1110, 'The caller has created no task of that id at that server.'),
  ERR_SERVER_EXISTS: entry(7, 1096, 'A server of that name is registered already.'),
  ERR_DYNAMIC_REFUSED: entry(2, 1097, 'A host may not launch servers, or not this one, or not one more.'),
  ERR_SCOPE_VIOLATION: entry(2, 1091, 'The server did what its declaration or grants do not cover.', { failure: 'MP-FH-008' }),
  ERR_EFFECT_UNCONTAINED: entry(2, 1099, 'A declaration names a side effect or a scope that the server’s sandbox does not grant.'),
  ERR_CREDENTIAL_SOURCE: entry(1, 1100, 'A credential’s source is unset, empty, unsafe, late or fails.', { retryable: true }),
  ERR_CREDENTIAL_REFUSED: entry(7, 1101, 'A credential’s value or use is one that can’t be kept safe.'),
  ERR_CREDENTIAL_BUSY: entry(1, 1102, 'Another call’s secret is open for the same host, and did not end in time.', { retryable: true }),
  ERR_SECRET_IN_RESULT: entry(1, 1103, 'A server’s answer held a secret, and was withheld.'),
  ERR_ENGINE_ENDPOINT: entry(7, 1120, 'The container engine is named in a form, or reached in a way, that cannot be used or trusted.'),
  ERR_ENGINE_UNREACHABLE: entry(1, 1121, 'No container engine answers there, or the daemon’s user may not use it.', { failure: 'MP-FH-007', retryable: true }),
  ERR_ENGINE_TIMEOUT: entry(1, 1122, 'The container engine did not answer a request in time.', { failure: 'MP-FH-007', retryable: true }),
  ERR_ENGINE_REFUSED: entry(1, 1123, 'The container engine refused a request; the message has its words.', { failure: 'MP-FH-007' }),
  ERR_IMAGE_MISSING: entry(8, 1124, 'The container engine does not have the server’s image; a launch pulls nothing.', { failure: 'MP-FH-001' }),
  ERR_IMAGE_CHANGED: entry(2, 1125, 'The server’s image is not the one that was registered.', { failure: 'MP-FH-009' }),
  ERR_IMAGE_UNSAFE: entry(2, 1127, 'The server’s image has something that would change how it is confined.', { failure: 'MP-FH-007' }),
  ERR_SHORTAGE: entry(1, 1128, 'The machine is short of file descriptors, memory, processes or room on a disk.', { retryable: true }),
  ERR_REGISTRY_LOGIN: entry(7, 1126, 'The login that the docker CLI remembers for a registry can not be had.'),
  ERR_METHOD_REFUSED: entry(2, 1064, 'The MCP method is unknown or not one that may pass in that direction.'),
  ERR_MESSAGE_AMBIGUOUS: entry(2, 1065, 'The message has duplicate, case-variant or NUL-bearing keys, or `__proto__`, where policy reads, so two parsers could differ.'),
  ERR_MESSAGE_TOO_LARGE: entry(1, 1066, 'A line is longer than the limit of its stream, or has more keys and values in it than are read.'),
  ERR_BATCH_REFUSED: entry(2, 1067, 'A JSON-RPC batch came outside protocol version 2025-03-26.'),
  ERR_DAEMON_UNAVAILABLE: entry(5, 1070, 'No daemon answers on the socket.', { retryable: true }),
  ERR_DAEMON_RUNNING: entry(1, 1071, 'Another daemon holds this runtime or state directory.'),
  ERR_NOT_AUTHORISED: entry(6, 1072, 'The caller is not allowed to use this socket or this method, or to read this journal.'),
  ERR_BUSY: entry(1, 1073, 'A bound on connections, queued messages or calls in flight is reached, or a call’s turn at its server did not come in time.', { retryable: true }),
  ERR_SEPARATION: entry(7, 1074, '`require_separation` is set, and a host shares a uid with the daemon or a sandbox.'),
  ERR_RUNTIME_UNSAFE: entry(7, 1075, 'The runtime or state folder can’t be made or written, has other things in it, or can be replaced by somebody else.'),
  ERR_DAEMON_PROTOCOL: entry(5, 1076, 'The daemon and the caller speak different versions of the control protocol.'),
  ERR_JOURNAL: entry(1, 1080, 'The journal cannot be written, so nothing is called.', {
    failure: 'MP-FH-010',
    retryable: true,
  }),
  ERR_JOURNAL_CORRUPT: entry(
    4,
    1081,
    'The journal is not what was written: a record does not fit its hash, its place or its key.',
  ),
  ERR_JOURNAL_KEY: entry(7, 1082, 'The journal’s key is lost, can be read by others, is not the daemon’s, or is no key.'),
  ERR_PARSE: entry(1, -32700, 'The line is not JSON.'),
  ERR_INVALID_REQUEST: entry(1, -32600, 'The JSON is not a JSON-RPC 2.0 message.'),
  ERR_METHOD_NOT_FOUND: entry(1, -32601, 'The control socket, or the protocol version of a shared process, has no such method.'),
  ERR_INVALID_PARAMS: entry(7, -32602, 'The parameters of a control method are not what its schema says, or a request to a shared process does not say who speaks.'),
} as const satisfies Record<string, Entry>

/** A stable failure code. */
export type ErrorCode = keyof typeof catalogue

/** Tells whether a string from elsewhere is a code of the catalogue. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(catalogue, code)
}

/** What an error adds for machines: names, paths, digests; never a secret, and never what the catalogue says of its code. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null | readonly string[]>> & {
  readonly [said in 'code' | 'failure' | 'retryable']?: never
}

/** The one error class of Sallyport: a message for people, a code and details for programs. */
export class SallyportError extends StacklessError {
  override readonly name = 'SallyportError'
  readonly code: ErrorCode
  readonly details: ErrorDetails

  /** The message says what failed, on what, with which value, and what to do, in one line; a value may be anybody's, and is cut. */
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(clip(message), options)
    this.code = code
    this.details = details
  }

  /** Wraps whatever was thrown, once, at a boundary. */
  static from(thrown: unknown): SallyportError {
    if (thrown instanceof SallyportError) return thrown
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    if (isShortage(thrown))
      return new SallyportError('ERR_SHORTAGE', `${message}; ${enough}`, {}, { cause: thrown })
    return new SallyportError('ERR_INTERNAL', message, {}, { cause: thrown })
  }

  /** Reads the error object of an answer, the inverse of `toRpc`; what is not ours becomes ERR_INTERNAL. */
  static fromRpc(error: unknown): SallyportError {
    const { message, data } = record(error)
    const { code, failure: _failure, retryable: _retryable, ...rest } = record(data)
    const details = Object.fromEntries(Object.entries(rest).filter(isDetail))
    return new SallyportError(isErrorCode(code) ? code : 'ERR_INTERNAL', String(message), details)
  }

  get exitStatus(): number {
    return catalogue[this.code].exit
  }

  /** The JSON-RPC error object; the cause stays here, for the log. */
  toRpc(): { code: number; message: string; data: Record<string, unknown> } {
    const { rpc, failure, retryable } = catalogue[this.code]
    return {
      code: rpc,
      message: this.message,
      data: { ...this.details, code: this.code, failure, retryable },
    }
  }
}

/** What helps where the machine is short of something. */
export const enough =
  'stop what uses up descriptors, memory, processes or room, or raise the limit, then try again'

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function isDetail(entry: [string, unknown]): entry is [string, ErrorDetails[string]] {
  const value = entry[1]
  if (Array.isArray(value)) return value.every((item) => typeof item === 'string')
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}
