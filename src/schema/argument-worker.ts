// A thread that judges arguments by schemas of servers, which may be hostile: whoever started it stops it when it is late.
import { readlinkSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { Ajv, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isMultiple } from '../lib/multiple.ts'
import { inDialect } from './dialect.ts'
import { patternOf } from './pattern.ts'

/** What the thread is asked. */
export interface Question {
  /** Names the schema from the first question on */
  readonly digest: string
  readonly schema: unknown
  readonly value: unknown
}

/** What the thread says: once, when it has loaded, its folder below /proc; then what is wrong in each question, or null. */
export type Said = { readonly task: string } | { readonly problem: string | null }

const compiled = new Map<string, ValidateFunction>()
const maxCompiled = 256

/** Null when the value fits; no reference leaves the schema, and formats are what the dialect makes of them: notes. */
function judge({ digest, schema, value }: Question): string | null {
  const check = compiled.get(digest) ?? compile(schema)
  if (compiled.size >= maxCompiled) compiled.clear()
  compiled.set(digest, check)
  const fits: unknown = check(value)
  if (fits === true) return null
  const [first] = check.errors ?? []
  return first === undefined
    ? 'arguments do not fit'
    : `arguments${first.instancePath}: ${first.message ?? 'does not fit'}`
}

// Own members only: `{}` has no constructor that a schema could require or forbid.
const options = {
  strict: false,
  validateFormats: false,
  logger: false,
  ownProperties: true,
  code: { regExp: Object.assign(patternOf, { code: 'patternOf' }) },
} as const

/** The dialect is 2020-12, unless the schema names an older one. */
function compile(schema: unknown): ValidateFunction {
  if (typeof schema !== 'object' || schema === null)
    return judgeOf(Ajv2020).compile(schema === false ? false : {})
  const { $schema, ...rest } = schema as Record<string, unknown>
  const isOld = typeof $schema === 'string' && /draft-0[4-7]/.test($schema)
  return judgeOf(isOld ? Ajv : Ajv2020).compile(inDialect(rest) as object)
}

/** It divides as people do: by doubles no price is a multiple of a cent. */
function judgeOf(Dialect: typeof Ajv | typeof Ajv2020): Ajv {
  const ajv = new Dialect(options)
  ajv.removeKeyword('multipleOf')
  return ajv.addKeyword({
    keyword: 'multipleOf',
    type: 'number',
    schemaType: 'number',
    errors: false,
    error: { message: ({ schema }) => `must be a multiple of ${String(schema)}` },
    validate: (step: number, value: number) => isMultiple(value, step),
  })
}

function say(said: Said): void {
  // oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(said)
}

parentPort?.on('message', (question: Question) => {
  try {
    say({ problem: judge(question) })
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 300) : 'no reason'
    say({ problem: `the tool's schema cannot be used: ${reason}` })
  }
})
say({ task: readlinkSync('/proc/thread-self') })
