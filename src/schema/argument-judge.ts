// Asks the thread that judges arguments: one question at a time, and no schema that was a burden twice.
import { ArgumentQueue } from './argument-queue.ts'
import { absent, ArgumentThread, type Verdict } from './argument-thread.ts'
import type { Question } from './argument-worker.ts'

/** Memory that the thread has for short arguments, and at most */
const [usualBytes, mostBytes] = [64 * 1024 * 1024, 1024 * 1024 * 1024]
/** Of the arguments, that a judgement may make */
const copies = 8
/** Arguments that need more than the usual memory are long */
const longBytes = usualBytes / copies
/** Times that a schema may end the thread for one principal before its tool is refused to that */
const maxStrikes = 2

/** Whose schema a question is about, and whose arguments. */
export interface Owner {
  readonly server: string
  /** Counts the server's acceptances: what was refused under one is tried again under the next */
  readonly acceptance: number
  readonly principal: string
}

interface Asked extends Owner {
  readonly question: Question
  readonly answer: (problem: string | null) => void
}

interface Strikes {
  readonly acceptance: number
  /** Digest of a schema -> how often it ended the thread */
  readonly counts: Map<string, number>
}

/** The thread is started when first needed, and again when a question has ended it. */
export class ArgumentJudge implements AsyncDisposable {
  readonly #queue = new ArgumentQueue<Asked>()
  readonly #strikes = new Map<string, Strikes>()
  #thread: ArgumentThread | null = null
  #isBusy = false
  #isOver = false

  /** Resolves with null, or with what is wrong; never rejects. What waits is asked in the order of `ArgumentQueue`. */
  ask(question: Question, owner: Owner): Promise<string | null> {
    return new Promise((answer) => {
      this.#queue.add({ ...owner, question, answer })
      void this.#work()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    for (const { answer } of this.#queue.rest()) answer('Sallyport is stopping')
    await this.#thread?.[Symbol.asyncDispose]()
  }

  async #work(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    for (let asked = this.#queue.next(); asked !== null; asked = this.#queue.next()) {
      const began = performance.now()
      asked.answer(await this.#judge(asked))
      this.#queue.done(asked, performance.now() - began)
    }
    this.#isBusy = false
  }

  async #judge(asked: Asked): Promise<string | null> {
    if (this.#isOver) return 'Sallyport is stopping'
    const counts = this.#countsOf(asked)
    const { digest } = asked.question
    if ((counts.get(digest) ?? 0) >= maxStrikes) return refusal(asked.server)
    const room = roomFor(asked.question)
    if (room === null) return tooLong
    if ((this.#thread?.memoryBytes ?? room) < room) this.#letGo()
    const verdict = await this.#askThread(asked.question, room)
    if (verdict.kind !== 'answer' || room > usualBytes) this.#letGo()
    if (verdict.kind === 'answer') return verdict.problem
    if (this.#isOver) return 'Sallyport is stopping'
    if (!isToBlame(verdict, asked.question)) return unjudged(verdict)
    counts.set(digest, (counts.get(digest) ?? 0) + 1)
    return lost(verdict, (counts.get(digest) ?? 0) >= maxStrikes ? asked.server : null)
  }

  /** A thread that the machine has no process or memory for is thrown by Node, and not told of by the thread. */
  async #askThread(question: Question, room: number): Promise<Verdict> {
    try {
      this.#thread ??= new ArgumentThread(room)
    } catch (error) {
      return absent(error)
    }
    return this.#thread.ask(question)
  }

  /** It is on its way out, and nobody listens to it any more. */
  #letGo(): void {
    void this.#thread?.[Symbol.asyncDispose]()
    this.#thread = null
  }

  /** It may be the arguments that are to blame: what one principal brings about is no other's loss. */
  #countsOf(owner: Owner): Map<string, number> {
    const { acceptance } = owner
    const known = this.#strikes.get(keyOf(owner))
    if (known !== undefined && known.acceptance === acceptance) return known.counts
    const counts = new Map<string, number>()
    this.#strikes.set(keyOf(owner), { acceptance, counts })
    return counts
  }
}

const keyOf = ({ server, principal }: Owner): string => `${server} ${principal}`

const refusal = (server: string): string =>
  `judging by the tool's schema went wrong ${maxStrikes} times: it is refused until sallyport accept ${server}`

type Failure = Exclude<Verdict, { kind: 'answer' }>

/** Whether the schema is what ended the thread: not where the machine did, or where arguments are long and time was short. */
const isToBlame = ({ kind }: Failure, { value }: Question): boolean =>
  kind === 'fault' || kind === 'full' || (kind === 'slow' && bytesOf(value) < longBytes)

/** What the thread is to have for a question: room for some copies of the arguments; null where that is too much. */
function roomFor({ value }: Question): number | null {
  const room = Math.max(usualBytes, bytesOf(value) * copies)
  return room <= mostBytes ? room : null
}

/** Bytes that the arguments' text, or what is read from it, takes in the thread at most, but for the number of its parts. */
const bytesOf = (value: string): number => value.length * 2

const tooLong = `they are too long to be judged by the tool's schema: at most ${mostBytes / copies / 2 ** 21} Mi characters`
const judging = "judging them by the tool's schema"

function unjudged({ kind, problem }: Failure): string {
  if (kind === 'absent') return `nothing can judge them by the tool's schema: ${problem}`
  const why = kind === 'starved' ? 'the machine is too busy, try again' : 'they are long, send less at once'
  return `${judging} ${problem}: ${why}`
}

function lost({ problem }: Failure, refused: string | null): string {
  return refused === null
    ? `${judging} ${problem}; once more, and the tool is refused`
    : `${judging} ${problem}, and not for the first time: the tool is refused until sallyport accept ${refused}`
}
