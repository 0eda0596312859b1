// What the daemon tells V8, which cannot know that it will do the same few things thousands of times a second.
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'

/** Says whether V8's young generation may double when much of it survives, as it does by default. */
export function mayGrow(isAllowed: boolean): void {
  setFlagsFromString(`--semi-space-growth-factor=${isAllowed ? 2 : 1}`)
}

/**
 * Lets the young generation double as long as it stays within so many bytes. V8 itself stops at 128 MiB on a machine with memory
 * enough, and gets there: each launch leaves a little that survived, and what survived is added up until it doubles. It
 * doubles in a collection, so that after each one the next is decided on, a little late: two at once may pass the bound by one.
 */
export function growWithin(bytes: number): void {
  const decide = (): void => mayGrow(youngBytes() * 2 <= bytes)
  new PerformanceObserver(decide).observe({ entryTypes: ['gc'] })
  decide()
}

const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0

/**
 * Lets V8 put three times as much of what a function calls into its machine code as by default (3000 bytes of bytecode for
 * 920, and twice as much with what is always put there). A governed call goes through hundreds of small functions: those that
 * stand together need no calls, and of the objects that they hand each other many need not be made.
 */
export function inlineMore(): void {
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=3000')
  setFlagsFromString('--max-inlined-bytecode-size-absolute=9000')
}

/**
 * Lets V8 compile what is called again and again sooner: after 100 calls of a function and 600, for 400 and 3000. By its default a
 * daemon whose host calls one tool at a time goes through unoptimized code for its first ten thousand calls, which few daemons see.
 */
export function optimizeSooner(): void {
  setFlagsFromString('--invocation-count-for-maglev=100')
  setFlagsFromString('--invocation-count-for-turbofan=600')
  setFlagsFromString('--minimum-invocations-after-ic-update=100')
}

/**
 * Lets the old generation become three times what was alive in it before all of it is marked again. By its default V8 goes by its own
 * heap, of which a daemon has 20 MB, and counts against the 10 MB which that may grow what Buffers take outside of it: three results
 * of 1 MiB, of which nothing is alive any more when they are sent. It marked all for every three of them, half of what a daemon did.
 */
export function markLater(): void {
  setFlagsFromString('--heap-growing-percent=200')
}

/**
 * Takes back what an environment (`NODE_OPTIONS=--max-old-space-size=8192`) or a command line says of V8's heaps, for heaps that are
 * made from now on. V8 puts such a flag in the place of a thread's own `resourceLimits`: too large, and the thread has no limit;
 * with a larger young generation, and V8 ends the process where it would have ended the thread.
 */
export function limitsAsGiven(): void {
  for (const size of ['max-heap', 'initial-heap', 'max-old-space', 'initial-old-space'])
    setFlagsFromString(`--${size}-size=0`)
  for (const size of ['max', 'min']) setFlagsFromString(`--${size}-semi-space-size=0`)
}
