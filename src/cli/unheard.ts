// An output that nobody takes: what a verb does then.
import { refusalOf, troubleOf } from '../config/named-file.ts'
import { SallyportError } from '../errors.ts'
import { visible, whatIsDone } from './output.ts'

/**
 * Ends this process as it can't say what it has to: `sallyport events | head` is a proper end, with the status of what was
 * found by then, and a full disk is none.
 */
export function endUnheard(error: NodeJS.ErrnoException): never {
  if (error.code === 'EPIPE') process.exit()
  const stdout = { path: 'stdout', access: 'write', code: 'ERR_INTERNAL', mend: 'send it elsewhere' } as const
  const failure = refusalOf(error, stdout) ?? SallyportError.from(error)
  process.stderr.write(`sallyport: ${visible(unheard(failure))} (${failure.code})\n`)
  process.exit(failure.exitStatus)
}

// Who is told to try again would have it done twice.
function unheard({ message, details: { got } }: SallyportError): string {
  const done = whatIsDone()
  if (done === null) return message
  return `stdout: ${troubleOf(String(got), 'write')}, yet this is done: ${done}`
}

/** From now on stdout is a stream like any other, whose loss ends what speaks on it; tells what was lost, once it was. */
export function hearLoss(): () => NodeJS.ErrnoException | null {
  let loss: NodeJS.ErrnoException | null = null
  process.stdout.off('error', endUnheard).on('error', (error: NodeJS.ErrnoException) => (loss ??= error))
  return () => loss
}
