// The stop ladder: end of input, SIGTERM, SIGKILL, and proof that nothing is left.
import type { SandboxExit, SandboxProcess } from '../../sandbox/driver.ts'
import { enough, SallyportError } from '../../errors.ts'
import { soon } from '../../lib/deadline.ts'
import { errnoOf } from '../../lib/missing.ts'
import { shortOf } from '../../lib/short-of.ts'

/** The steps in their order; docs/lifecycle.md has them in the same words. Whoever calls `stop` has taken the first. */
export const stopSteps = ['intake', 'eof', 'term', 'kill', 'proof'] as const

/** How long a killed sandbox may take to be gone, ms; beyond it something is wrong with the machine */
const proofMs = 5000

interface Ladder {
  /** How long the server may take to end after its input has ended, ms */
  readonly eofMs: number
  /** How long it may take after SIGTERM, ms */
  readonly termMs: number
  /** Called once, before SIGTERM is sent */
  readonly beforeTerminate?: () => void
}

/**
 * Makes a server end, in the order that MCP asks for, and returns how it ended once nothing of it is left. The caller
 * has closed the intake. Takes at most `eofMs + termMs` and the time that the kernel needs; fails with ERR_INTERNAL
 * where the kernel does not finish, or ERR_SHORTAGE where nobody can look, and then nothing may be reported as stopped.
 */
export async function stop(process: SandboxProcess, ladder: Ladder): Promise<SandboxExit> {
  process.stdin.end()
  const afterEof = await soon(process.ended, ladder.eofMs)
  if (afterEof !== null) return afterEof

  ladder.beforeTerminate?.()
  process.terminate()
  const afterTerm = await soon(process.ended, ladder.termMs)
  if (afterTerm !== null) return afterTerm

  process.kill()
  const afterKill = await soon(process.ended, proofMs)
  if (afterKill !== null) return afterKill
  throw notGone(process)
}

/** Who has nothing to look with sees nobody go. */
function notGone({ spec, initPid }: SandboxProcess): SallyportError {
  const what = `server ${spec.server} was killed and is still not gone after ${proofMs} ms; see init pid ${initPid}`
  const short = shortOf()
  if (short === null) return new SallyportError('ERR_INTERNAL', what)
  return new SallyportError(
    'ERR_SHORTAGE',
    `${what}: it may be, and nobody can look (${errnoOf(short)}); ${enough}`,
    {},
    { cause: short },
  )
}

/** Waits for all, whatever happens to some, then fails with the first failure. */
export async function settleAll(work: readonly Promise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(work)) {
    if (outcome.status === 'rejected') throw SallyportError.from(outcome.reason)
  }
}
