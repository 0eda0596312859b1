// Running another program in our place: on our own streams, with our signals, to its own end.
import { constants } from 'node:os'
import { execa } from 'execa'

const passedOn = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * Runs a program on this process's stdin, stdout and stderr, and returns its status, 128 + n for a signal. Signals that
 * would end us are passed on to it instead.
 */
export async function runInPlace(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  // Before there is a child: a signal that came between would end us and leave it behind.
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal)
  for (const signal of passedOn) process.on(signal, pass)
  const child = execa(file, args, { stdio: 'inherit', env, extendEnv: false, reject: false })
  const { exitCode, signal, cause } = await child
  for (const signal of passedOn) process.off(signal, pass)
  if (exitCode !== undefined) return exitCode
  if (signal !== undefined) return 128 + constants.signals[signal]
  throw cause instanceof Error ? cause : new Error(`${file} could not be run`)
}

/**
 * Runs a program that answers on stdout, with the input on its stdin and no variable but those. Never throws: `problem` says how
 * it failed, in words without anything of what it said; it is killed after `ms`.
 */
export async function answerOf(
  file: string,
  args: readonly string[],
  {
    input,
    env,
    ms,
  }: {
    readonly input: string
    readonly env: Readonly<Record<string, string | undefined>>
    readonly ms: number
  },
): Promise<{ readonly said: string; readonly problem: string | null }> {
  const options = { input, env, extendEnv: false, reject: false, timeout: ms, maxBuffer: 1 << 20 } as const
  const { stdout, failed, timedOut, exitCode, signal, code } = await execa(file, args, options)
  if (!failed) return { said: stdout, problem: null }
  const how = timedOut
    ? `no answer in ${ms} ms`
    : (signal ?? (exitCode === undefined ? null : `status ${exitCode}`))
  return {
    said: stdout,
    problem: how ?? (code === 'ENOENT' ? 'it is not in the PATH' : (code ?? 'it can not be run')),
  }
}
