// From a method's name to its handler: who may call it, whether its parameters are right, and nothing more.
import { SallyportError } from '../../errors.ts'
import type { Call, HandOver, Service } from '../../rpc/answering.ts'
import type { HostMethods, OperatorMethods } from '../../rpc/protocol.ts'
import { formatPath } from '../../schema/problem.ts'
import type { Problem } from '../../schema/problem.ts'
import { isControlMethod, validateParams } from '../../schema/params.ts'
import type { Caller } from '../../supervisor/ports.ts'
import { expectProtocol } from './protocol-gate.ts'

/** One call: who asks, and what the connection offers beyond an answer. */
export interface MethodCall extends Call {
  readonly caller: Caller
}

/** Method -> handler; the one method that answers with a stream is apart. */
export type MethodTable<M extends keyof OperatorMethods> = {
  readonly [K in Exclude<M, 'session/attach'>]: (
    params: OperatorMethods[K]['params'],
    call: MethodCall,
  ) => OperatorMethods[K]['result'] | Promise<OperatorMethods[K]['result']>
}

/** Serves `session/attach`. */
export type Attach = (params: HostMethods['session/attach']['params'], call: MethodCall) => Promise<HandOver>

/**
 * The service of one socket. Methods of the protocol that are not in its table are the other socket's, and answer
 * ERR_NOT_AUTHORISED; the rest are unknown.
 */
export function serviceOf(
  role: Caller['role'],
  table: Readonly<Record<string, unknown>>,
  attach: Attach,
): Service {
  const asCaller = (call: Call): MethodCall => ({ ...call, caller: { principal: call.principal, role } })
  return {
    async call(method, params, call) {
      const handler = Object.hasOwn(table, method) ? table[method] : undefined
      if (typeof handler !== 'function') throw refusal(method)
      if (method === 'sallyport/hello') expectProtocol(params)
      return handler(valid(method, params), asCaller(call))
    },
    async attach(params, call) {
      expectProtocol(params)
      // The schema vouches for the shape.
      return attach(
        valid('session/attach', params) as HostMethods['session/attach']['params'],
        asCaller(call),
      )
    },
  }
}

function refusal(method: string): SallyportError {
  const shown = JSON.stringify(method.slice(0, 100))
  if (isControlMethod(method))
    return new SallyportError(
      'ERR_NOT_AUTHORISED',
      `${shown} is the operator's; hosts may not call it, operator.sock takes it`,
      { method },
    )
  return new SallyportError('ERR_METHOD_NOT_FOUND', `the control protocol has no method ${shown}`)
}

function valid(method: string, params: unknown): unknown {
  if (!isControlMethod(method)) throw refusal(method)
  const outcome = validateParams(method, params)
  if (outcome.ok) return outcome.value
  throw new SallyportError('ERR_INVALID_PARAMS', `${method}: ${outcome.problems.map(sentence).join('; ')}`, {
    method,
  })
}

function sentence({ at, got, expected, mend }: Problem): string {
  return `${formatPath(['params', ...at])}: got ${got}, expected ${expected}${mend === null ? '' : ` (${mend})`}`
}
