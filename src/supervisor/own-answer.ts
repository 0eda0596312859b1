// A session's call in a process of its own: what that process answers, as the line that the host would have got.
import { SallyportError } from '../errors.ts'
import type { InstanceId } from '../lib/ids.ts'
import type { Admission, Outcome } from '../schema/governor.ts'
import type { ServerSettings } from '../schema/settings.ts'
import { errorLine } from './answers.ts'
import type { HostRequest } from './conversation.ts'
import type { RequestOptions } from './mcp-client.ts'
import type { OwnProcesses, Speech } from './own-processes.ts'
import { SecretInResult } from './secret-in-result.ts'
import { saysFailed } from './tool-result.ts'

export interface OwnAnswer extends Pick<Outcome, 'kind' | 'bytes' | 'detail'> {
  /** In latin1 reading, with its line feed */
  readonly line: string
}

/** Never rejects: what went wrong is an answer, too. */
export async function ownAnswer(
  own: OwnProcesses,
  { output, name }: ServerSettings,
  { id }: HostRequest,
  admission: Admission & { readonly process: InstanceId },
  params: string,
  options: RequestOptions & Speech,
): Promise<OwnAnswer> {
  try {
    const answer = await own.call(admission, params, options)
    const bytes = answer.kind === 'result' ? answer.result.raw : answer.raw
    if (Buffer.byteLength(bytes) > output.resultBytes) throw tooLarge(name, output.resultBytes)
    const line = `{"jsonrpc":"2.0","id":${id.raw},"${answer.kind}":${Buffer.from(bytes).toString('latin1')}}\n`
    const kind = answer.kind === 'error' ? 'error' : saysFailed(bytes) ? 'tool-error' : 'result'
    return { kind, bytes, detail: null, line }
  } catch (thrown) {
    const error = SallyportError.from(thrown)
    const bytes = error instanceof SecretInResult ? error.redacted : null
    const kind = error.code === 'ERR_CALL_TIMEOUT' ? 'timeout' : bytes === null ? 'lost' : 'error'
    return { kind, bytes, detail: error.message, line: errorLine(id, error) }
  }
}

const tooLarge = (server: string, limit: number): SallyportError =>
  new SallyportError(
    'ERR_RESULT_TOO_LARGE',
    `the answer of ${server} is larger than output.result_bytes (${limit}); ask for less or raise it`,
  )
