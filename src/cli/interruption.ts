// Signals, heard from the program's first lines, since loading takes a while: Ctrl-C and SIGTERM for verbs that take back what they made.
import { SallyportError } from '../errors.ts'
import { toldBySignals } from './endings.ts'

/** Being asked to end, as a signal that work stops by. */
export interface Interruption {
  readonly signal: AbortSignal
  /** From here on being terminated is nothing: what was made is to be finished */
  ignoreTermination(): void
  /** From here on the process ends as any other does */
  [Symbol.dispose](): void
}

let heard: Interruption | null = null

/** Listens from now on where the command line names such a verb, or a daemon in the foreground; of SIGUSR1 nothing comes in any. */
export function hearEarly([verb, ...more]: readonly string[]): void {
  // Node would open a debugger on a port of the loopback, where every user of the machine can have this one run what they like.
  process.on('SIGUSR1', () => undefined)
  const [act] = more
  if (verb === 'serve' && !more.includes('--background')) toldBySignals()
  else if (verb === 'verify' || (verb === 'profile' && act === 'learn')) heard = listen()
}

/** What was heard since the start, and what is from now on. The caller disposes of it. */
export const interruption = (): Interruption => heard ?? listen()

function listen(): Interruption {
  const controller = new AbortController()
  const interrupt = (): void =>
    controller.abort(new SallyportError('ERR_CALL_CANCELLED', 'interrupted, before it was through'))
  const ignore = (): void => undefined
  // A second Ctrl-C is for those who do not wait.
  process.once('SIGINT', interrupt).on('SIGTERM', interrupt)
  return {
    signal: controller.signal,
    ignoreTermination: () => void process.off('SIGTERM', interrupt).on('SIGTERM', ignore),
    [Symbol.dispose]() {
      // Who was asked to end says so by the status, however often it is asked on its way.
      if (controller.signal.aborted) process.on('SIGTERM', ignore)
      else process.off('SIGTERM', ignore)
      process.off('SIGINT', interrupt).off('SIGTERM', interrupt)
    },
  }
}
