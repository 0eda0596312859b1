// Takes away what a verification has on the host when it is killed before it could do so itself, by whatever signal.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { SallyportError } from '../../errors.ts'
import { within } from '../../lib/deadline.ts'

/** Something to take away: a file or folder with all that is in it, or a control group once nothing runs in it. */
export type Leaving = `${'tree' | 'group'} /${string}`

/** Disposing lets it go without taking anything away: whoever made the things did. */
export interface Janitor extends AsyncDisposable {
  /** Its process, which is there as long as the verification */
  readonly pid: number
  /** Say it before it is made. Resolves when the janitor knows */
  takes(leaving: Leaving): Promise<void>
}

// The end of descriptor 3 without `done` is a death. Groups come first: they empty as their sandboxes find themselves alone.
const script = `
trap '' HUP INT TERM
while IFS= read -r line <&3; do
  [ "$line" = done ] && exit 0
  set -- "$@" "$line"
done
for line; do
  case $line in 'group '*) ;; *) continue ;; esac
  group=\${line#group }
  tries=0
  while [ -d "$group" ] && [ $tries -lt 100 ]; do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    tries=$((tries + 1))
  done
done
for line; do
  case $line in 'tree '*) rm -rf -- "\${line#tree }" ;; esac
done
`

const doneMs = 2000

/** Starts it, out of reach of a Ctrl-C at the terminal. Throws ERR_INTERNAL where there is no shell, ERR_SHORTAGE where there is nothing to start it with. */
export const startJanitor = async (): Promise<Janitor> => {
  const child = spawn('/bin/sh', ['-c', script, 'sallyport-verify-janitor'], {
    cwd: '/',
    detached: true,
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  await once(child, 'spawn').catch((cause: unknown) => {
    const what = '/bin/sh could not be started, and a verification that is killed would leave its canaries'
    throw SallyportError.from(new Error(`${what}: ${String(cause)}`, { cause }))
  })
  const orders = child.stdio[3] as Writable
  orders.on('error', () => undefined) // it was killed; what it was to take away is taken away all the same
  const say = (line: string): Promise<void> =>
    new Promise((resolve) => orders.write(`${line}\n`, () => resolve()))
  return {
    pid: child.pid ?? 0,
    takes(leaving) {
      if (leaving.includes('\n'))
        throw new SallyportError('ERR_INTERNAL', 'a path with a line feed cannot be named to the janitor')
      return say(leaving)
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      await say('done')
      orders.end()
      await within(exit, doneMs, () => new Error('janitor does not end')).catch(() => child.kill('SIGKILL'))
    },
  }
}
