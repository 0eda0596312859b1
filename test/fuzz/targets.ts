// Everything that is fuzzed: what is TypeScript by ourselves, guided by V8's coverage, and what is C by libFuzzer.
import type { Target } from './target.ts'
import { notices, opening, reports } from './targets/door.ts'
import { config, document, profile } from './targets/files.ts'
import { hello } from './targets/hello.ts'
import { http } from './targets/http.ts'
import { answered, frames, intercepted } from './targets/intercept.ts'
import { canonical, framing } from './targets/json.ts'

export const targets: readonly Target[] = [
  framing,
  canonical,
  document,
  config,
  profile,
  http,
  intercepted,
  answered,
  frames,
  hello,
  opening,
  notices,
  reports,
]

/** A harness of sandbox/fuzz. */
export interface Harness {
  readonly name: string
  readonly longestBytes: number
}

export const harnesses: readonly Harness[] = [
  ...['answer', 'container', 'gate', 'orders', 'resolver', 'supervise'].map((name) => ({
    name,
    longestBytes: 2048,
  })),
  { name: 'connects', longestBytes: 256 },
  { name: 'guard', longestBytes: 8192 },
  { name: 'refusals', longestBytes: 128 },
]
