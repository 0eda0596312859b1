// Two processors for a whole run, since the targets are for two: whatever it starts inherits them.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** Holds this process to two of the processors that it may use, where it may use more. Returns what is to be said of it. */
export function holdToTwo(): string {
  const allowed = allowedOf(readFileSync('/proc/self/status', 'utf8'))
  const said = allowed.length <= 2 ? fewer(allowed) : pinned(twoOf(allowed, siblingsOf), allowed.length)
  const held = availableParallelism()
  return held < Math.min(2, allowed.length) ? `${said} Its control group allows no more than ${held}.` : said
}

function fewer(allowed: readonly number[]): string {
  if (allowed.length < 2) return 'On one processor: the targets are for two.'
  const [first = 0, second = 0] = allowed
  return siblingsOf(first).includes(second)
    ? 'On two threads of one core: the targets are for two cores.'
    : 'On two processors.'
}

function pinned(two: readonly number[], of: number): string {
  const list = two.join(',')
  // Each thread that there is by now: Node has started some.
  const { status, error, stderr } = spawnSync('taskset', ['-a', '-c', '-p', list, String(process.pid)], {
    encoding: 'utf8',
  })
  if (status === 0) return `On two processors, ${two.join(' and ')} of the ${of} that there are.`
  const why = error?.message ?? stderr.trim()
  return `On ${of} processors, though the targets are for two: taskset (util-linux) did not hold it to two: ${why}`
}

/** The first, and the first of the others that is no thread of the same core; else just the second. */
export function twoOf(
  allowed: readonly number[],
  siblings: (processor: number) => readonly number[],
): readonly number[] {
  const [first = 0, ...rest] = allowed
  const same = siblings(first)
  return [first, rest.find((it) => !same.includes(it)) ?? rest[0] ?? first]
}

/** What the kernel says in `/proc/PID/status` that this process may use. */
export function allowedOf(status: string): readonly number[] {
  return listed(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? '0')
}

function siblingsOf(processor: number): readonly number[] {
  const path = `/sys/devices/system/cpu/cpu${processor}/topology/thread_siblings_list`
  return existsSync(path) ? listed(readFileSync(path, 'utf8').trim()) : []
}

/** Such as `0-3,8`. */
function listed(said: string): readonly number[] {
  return said.split(',').flatMap((part) => {
    const [from = 0, to = from] = part.split('-').map(Number)
    return Array.from({ length: to - from + 1 }, (_, n) => from + n)
  })
}
