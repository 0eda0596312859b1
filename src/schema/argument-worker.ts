// A thread that judges arguments by schemas of servers, which may be hostile: whoever started it stops it when it is late.
import { readlinkSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { beginning } from '../lib/clip.ts'
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

/** What the thread says: once, when it has loaded, its folder below /proc; then what is wrong in each question, or null. */
export type Said = { readonly task: string } | { readonly problem: string | null }

const compiled = new Map<string, ReturnType<typeof judgeBy>>()
const maxCompiled = 256

/** Null when the value fits; no reference leaves the schema, and formats are what the dialect makes of them: notes. */
function judge({ digest, schema, value }: Question): string | null {
  const check = compiled.get(digest) ?? judgeBy(JSON.parse(schema))
  if (compiled.size >= maxCompiled) compiled.clear()
  compiled.set(digest, check)
  return check(JSON.parse(value))
}

function say(said: Said): void {
  // oxlint-disable-next-line require-post-message-target-origin -- a thread, not a window
  parentPort?.postMessage(said)
}

parentPort?.on('message', (question: Question) => {
  try {
    say({ problem: judge(question) })
  } catch (error) {
    const reason = error instanceof Error ? beginning(error.message, 300) : 'no reason'
    say({ problem: `the tool's schema cannot be used: ${reason}` })
  }
})
say({ task: readlinkSync('/proc/thread-self') })
