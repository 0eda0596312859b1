// One step of many calls at once: what it takes of the processor's caches is there for all of them but the first.
//
// A governed call goes through more machine code than the first cache holds. Taken whole, one call after the other, each
// fetches all of it anew; taken step by step, 64 calls share most of it.

/** How long steps may take together in one turn where others choose how long one takes, ms. */
export const wholeTurnMs = 20

/** How many steps are taken before the clock is looked at again, which takes a hundredth of what a call does. */
const stepsALook = 4
/** Where so many took longer, ms, it is looked at behind each */
const dearMs = 1

/** Takes a step for all that came in one turn of the event loop, in their order, once the turn's own work is done. */
export class Together {
  readonly #failed: ((thrown: unknown) => void) | null
  readonly #turnMs: number
  #waiting: Step[] = []
  /** Whose each of them is */
  #whose: unknown[] = []
  /** What earlier turns have left, by party */
  readonly #left = new Map<unknown, Queue>()
  /** Of those, each that has its turn in this round, and in the next one */
  #round: readonly Queue[] = []
  #later: Queue[] = []
  /** Place in this round */
  #at = 0
  /** The next turn takes what an earlier one has left */
  #isLeft = false

  /**
   * `failed` is told of each step that throws; without it `now` fails as the first of them did. Where some have taken `turnMs`, the
   * others wait for the next turn, and whoever does something else has turns between; those of each party then come by turns.
   */
  constructor({ failed = null, turnMs = Infinity }: Partial<Options> = {}) {
    this.#failed = failed
    this.#turnMs = turnMs
  }

  /** Where `step` throws, those of its turn are taken all the same. */
  add(step: Step, whose: unknown = null): void {
    const waiting = this.#waiting
    const place = waiting.length
    waiting[place] = step // `push` would be a call
    if (this.#turnMs !== Infinity) this.#whose[place] = whose // or none is ever left
    if (place === 0) queueMicrotask(() => this.#isLeft || this.#take(this.#turnMs))
  }

  /** Takes the step for all that wait for it, before whatever needs to know what came of it. */
  now(): void {
    this.#take(Infinity)
  }

  #take(forMs: number): void {
    const [waiting, whose] = [this.#waiting, this.#whose]
    this.#waiting = []
    this.#whose = []
    const time = forMs === Infinity ? null : new Time(forMs)
    const failures = new Failures(this.#failed)
    let taken = 0
    if (this.#left.size === 0)
      while (taken < waiting.length && !isOver(time)) failures.of(waiting[taken++] as Step)
    for (; taken < waiting.length; taken++) this.#queue(waiting[taken] as Step, whose[taken])
    while (this.#left.size > 0 && !isOver(time)) failures.of(this.#next())
    if (this.#left.size === 0) this.#begin() // or who is gone would be kept until there is another round
    if (this.#left.size > 0 && !this.#isLeft) {
      this.#isLeft = true
      setImmediate(() => this.#goOn())
    }
    failures.tell()
  }

  #goOn(): void {
    this.#isLeft = false
    this.#take(this.#turnMs)
  }

  #queue(step: Step, whose: unknown): void {
    const queue = this.#left.get(whose)
    if (queue !== undefined) return void queue.steps.push(step)
    const fresh = { whose, steps: [step], next: 0 }
    this.#left.set(whose, fresh)
    this.#later.push(fresh)
  }

  /** The next round; gives the first party of it. */
  #begin(): Queue | undefined {
    this.#round = this.#later
    this.#later = []
    this.#at = 0
    return this.#round[0]
  }

  /** The step of the party whose turn it is, which then waits for all others. */
  #next(): Step {
    const queue = (this.#round[this.#at] ?? this.#begin()) as Queue
    this.#at += 1
    const step = queue.steps[queue.next] as Step
    queue.steps[queue.next++] = taken // or it would be kept for as long as the party has others
    if (queue.next > mostTaken && queue.next * 2 > queue.steps.length) {
      queue.steps.splice(0, queue.next)
      queue.next = 0
    }
    if (queue.next < queue.steps.length) this.#later.push(queue)
    else this.#left.delete(queue.whose)
    return step
  }
}

const taken: Step = () => undefined
/** Places of steps that are taken, beyond which those are cut off that are more than half of a queue */
const mostTaken = 64

/** Asked before each step: whether the steps have had their time. */
class Time {
  readonly #endMs: number
  #lookedMs: number
  #unseen = 0
  #look = 1
  #isOver = false

  constructor(forMs: number) {
    this.#lookedMs = performance.now()
    this.#endMs = this.#lookedMs + forMs
  }

  isOver(): boolean {
    return this.#isOver || (this.#unseen++ >= this.#look && this.#looked())
  }

  #looked(): boolean {
    const nowMs = performance.now()
    this.#look = nowMs - this.#lookedMs > dearMs ? 1 : stepsALook
    this.#unseen = 1
    this.#lookedMs = nowMs
    return (this.#isOver = nowMs >= this.#endMs)
  }
}

/** Without a time they have all there is. */
const isOver = (time: Time | null): boolean => time !== null && time.isOver()

/** What is told of steps that throw: each at once, or the first when all are taken. */
class Failures {
  readonly #failed: ((thrown: unknown) => void) | null
  #first: { readonly thrown: unknown } | null = null

  constructor(failed: ((thrown: unknown) => void) | null) {
    this.#failed = failed
  }

  of(step: Step): void {
    try {
      step()
    } catch (thrown) {
      if (this.#failed === null) this.#first ??= { thrown }
      else this.#failed(thrown)
    }
  }

  tell(): void {
    if (this.#first !== null) throw this.#first.thrown
  }
}

type Step = () => void

/** The steps of one party, of which those before `next` are taken. */
interface Queue {
  readonly whose: unknown
  readonly steps: Step[]
  next: number
}

interface Options {
  readonly failed: ((thrown: unknown) => void) | null
  /** How long the steps of one turn may take together, ms */
  readonly turnMs: number
}
