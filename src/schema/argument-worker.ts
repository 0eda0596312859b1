// A thread that judges arguments by schemas of servers, which may be hostile: whoever started it stops it when it is late.
import { readlinkSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { build } from '../lib/build.ts'
import { beginning } from '../lib/clip.ts'
import { parseJson } from '../lib/parse-json.ts'
import { judgeBy } from './dialect/compile.ts'

/** What the thread is asked: in texts, since whoever asks would hold up everybody while it copies what they say part by part. */
export interface Question {
  /** Names the schema from the first question on */
  readonly digest: string
  /** JSON */
  readonly schema: string
  /** JSON */
  readonly value: string
}

/** What the thread says: once, when it has loaded, its folder below /proc and its build; then what is wrong in each question, or null. */
export type Said = { readonly task: string; readonly build: string } | { readonly problem: string | null }

const compiled = new Map<string, ReturnType<typeof judgeBy>>()
/** Schemas that are kept compiled, and the characters of all of them: what one server's take of the thread's memory is no other's fault */
const most = { kept: 256, characters: 262_144 } as const
let kept = 0

/** Null when the value fits; no reference leaves the schema, and formats are what the dialect makes of them: notes. */
function judge({ digest, schema, value }: Question): string | null {
  return (compiled.get(digest) ?? compile(digest, schema))(parseJson(value))
}

function compile(digest: string, schema: string): ReturnType<typeof judgeBy> {
  const isLong = schema.length > most.characters
  if (isLong || compiled.size >= most.kept || kept + schema.length > most.characters) {
    compiled.clear()
    kept = 0
  }
  const check = judgeBy(parseJson(schema))
  if (isLong) return check
  compiled.set(digest, check)
  kept += schema.length
  return check
}

function say(said: Said): void {
  // oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(said)
}

parentPort?.on('message', (question: Question) => {
  try {
    say({ problem: judge(question) })
  } catch (error) {
    say({ problem: `the tool's schema cannot be used: ${reasonOf(error)}` })
  }
})

/** The stack is all that a judgement can run out of. */
function reasonOf(error: unknown): string {
  if (error instanceof RangeError)
    return 'its references lead round in a circle, or deeper than can be followed'
  return error instanceof Error ? beginning(error.message, 300) : 'no reason'
}

say({ task: readlinkSync('/proc/thread-self'), build })
