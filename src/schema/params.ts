// The parameters of a control method in, typed ones out, or everything that is wrong with them. Apart from the checks of files,
// which a daemon needs only while it reads some.
import { checked, type Validated } from './check.ts'
import { checksOfParams } from './params.gen.ts'
import type { Control } from './types.gen.ts'

/** A method of the control protocol. */
export type ControlMethod = keyof Control

/**
 * Validates the parameters of a control method; a method without parameters takes `{}`. They are not copied: the schema has
 * no defaults that would be written into them.
 */
export function validateParams<M extends ControlMethod>(
  method: M,
  params: unknown,
): Validated<NonNullable<Control[M]>> {
  return checked<NonNullable<Control[M]>>(method, checksOfParams[method], params)
}

/** Says whether the control protocol has the method, in this version. */
export function isControlMethod(method: string): method is ControlMethod {
  return Object.hasOwn(checksOfParams, method)
}
