// Answers requests of test files as another user, each a line `[id, what, args]` on stdin, until there are no more.
import { createInterface } from 'node:readline'
import type { Answer } from './as-user.ts'
import { type EgressRequest, runInside } from './egress.ts'
import { outputOf } from './launch.ts'

type Request =
  | readonly [what: 'fixture', args: Parameters<typeof outputOf>]
  | readonly [what: 'egress', args: EgressRequest]

const answer = (...[what, args]: Request): Promise<unknown> =>
  what === 'fixture' ? outputOf(...args) : runInside(args)

const say = (...told: Answer): void => void process.stdout.write(`${JSON.stringify(told)}\n`)

for await (const line of createInterface(process.stdin)) {
  const [id, ...request] = JSON.parse(line) as [number, ...Request]
  void answer(...request).then(
    (said) => say(id, said, null),
    (error: unknown) =>
      say(id, null, error instanceof Error ? (error.stack ?? error.message) : String(error)),
  )
}
