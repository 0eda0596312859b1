// What a run did and saw, for people; and what it found broken.

/** What has to hold whatever happens. */
export const invariants = {
  answers: 'every caller has one answer or one error, in time',
  lines: 'what a host reads are whole messages, up to where its session is cut',
  lives: 'no daemon ends but by a fault that ends it, and a proper end is one with status 0',
  recovers: 'once a fault is over, servers are called again',
  untouched: 'a reload leaves the process and the sessions of a server that it does not change',
  configured: 'the configuration that holds is the last one that could, and one that could not is told of',
  alone: 'no two daemons serve one folder',
  processes: 'no process is left',
  mounts: 'no mount is left',
  cgroups: 'no control group is left',
  sockets: 'no socket is left',
  files: 'no file is left beside the journal',
  containers: 'no container is left',
  leases: 'no permit and no question outlives its call',
  credentials: 'no credential outlives its call in a process, a file or a connection',
  secrets: 'no credential is told to a host or written down',
  intents: 'every effect has an intent, and none happens twice',
  refusals: 'what a caller was refused has had no effect',
  results: 'what a caller was told to be done has had its effect',
  outcomes: 'every intent has one end: an outcome, a denial or unknown',
  chain: 'the journal’s chain verifies',
  flat: 'memory and descriptors of the daemon are flat',
  level: 'a daemon that outlived faults comes back to what it held',
} as const

export type Invariant = keyof typeof invariants

/** Counts and findings of one run, which end where it is broken off: what is torn down then is no finding. */
export class Account {
  readonly broken: { readonly invariant: Invariant; readonly detail: string }[] = []
  readonly #counts = new Map<string, Map<string, number>>()
  readonly #began = performance.now()
  #isOver = false

  constructor(brokenOff: AbortSignal) {
    brokenOff.addEventListener('abort', () => {
      this.say('broken off: what was begun is undone')
      this.#isOver = true
    })
  }

  count(kind: string, what: string): void {
    const of = this.#counts.get(kind) ?? new Map<string, number>()
    this.#counts.set(kind, of.set(what, (of.get(what) ?? 0) + 1))
  }

  breaks(invariant: Invariant, detail: string): void {
    this.broken.push({ invariant, detail })
    this.say(`BROKEN ${invariant}: ${detail}`)
  }

  /** One line with the seconds since the beginning. */
  say(line: string): void {
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(1).padStart(6)
    this.print(`${seconds}  ${line}`)
  }

  /** The line as it is. */
  print(line: string): void {
    if (!this.#isOver) process.stdout.write(`${line}\n`)
  }

  /** Everything that was counted, most frequent first. */
  summary(): string {
    return [...this.#counts]
      .map(([kind, of]) => {
        const parts = [...of].toSorted(([, a], [, b]) => b - a).map(([what, count]) => `${what} ${count}`)
        return `  ${kind}: ${parts.join(', ')}`
      })
      .join('\n')
  }
}
