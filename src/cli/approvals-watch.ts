// `sallyport approvals --watch`: the person who is asked, one question at a time.
import type { Client } from '../client/client.ts'
import { SallyportError } from '../errors.ts'
import type { PendingApproval } from '../rpc/approvals.ts'
import { Keyboard, looked } from './keyboard.ts'
import { hint, jsonText, printPiece, visible } from './output.ts'
import { asked, settledLine, wholeQuestion } from './question.ts'

export interface WatchOptions {
  readonly json?: boolean
  readonly full?: boolean
}

type Answer = { readonly scope: 'once' | 'session' | 'policy' } | 'deny' | 'later'

const keys =
  'y once, s again in this session, p in any, n no, f all of the arguments, each with enter; enter alone later'
const unshown = 's and p are for more than this call: f first, which shows all that it says'
const noTerminal = 'without a terminal they are shown alone: answer with sallyport approve or sallyport deny'

/** Shows each question and how it ended, and at a terminal takes its answer. Throws ERR_CALL_CANCELLED where the person leaves. */
export async function watch(client: Client, options: WatchOptions, signal: AbortSignal): Promise<void> {
  const asks = process.stdin.isTTY && process.stdout.isTTY && options.json !== true
  const open = new Map<string, AbortController>()
  const over = new AbortController()
  const watching = AbortSignal.any([signal, over.signal])
  let hasLeft = false
  const leave = (): void => {
    hasLeft = true
    over.abort()
  }
  using keyboard = asks ? new Keyboard(leave) : null
  const person: Person | null = keyboard === null ? null : { keyboard, isUnaware: false }
  const full = options.full === true
  let turn: Promise<void> = Promise.resolve()
  const subscribed = (): void => {
    if (options.json !== true) hint(`waiting for questions; ${asks ? keys : noTerminal}`)
  }
  try {
    for await (const { method, params } of client.approvals({ signal: watching, subscribed })) {
      if (options.json === true) await printPiece(jsonText({ method, params }), { signal })
      else if (method === 'approvals/settled') {
        open.get(params.id)?.abort()
        open.delete(params.id)
        const line = `${settledLine(params)}\n`
        if (keyboard === null) await printPiece(line, { signal })
        else keyboard.write(line)
      } else if (person === null)
        await printPiece(`${await asked(client, params, { full, shows: '--full' }, signal)}\n`, { signal })
      else {
        const gone = new AbortController()
        open.set(params.id, gone)
        const asking = { person, signal: AbortSignal.any([gone.signal, watching]) }
        // One question at a time; each ends when somebody else has answered it.
        turn = turn.then(() => put(client, params, full, asking))
      }
    }
  } finally {
    over.abort() // a question that is still put would keep the terminal, and nobody takes its answer
    await turn
  }
  if (hasLeft) throw new SallyportError('ERR_CALL_CANCELLED', 'interrupted')
}

/** Who sits at the terminal. */
interface Person {
  readonly keyboard: Keyboard
  /** A question was taken away that was not answered: what is typed next may be its answer */
  isUnaware: boolean
}

interface Asking {
  readonly person: Person
  /** Aborted when the question is nobody's to answer any more */
  readonly signal: AbortSignal
}

/** Never rejects. */
async function put(client: Client, pending: PendingApproval, full: boolean, asking: Asking): Promise<void> {
  const { signal } = asking
  if (signal.aborted) return
  const { id } = pending
  try {
    process.stdout.write(`\n${await asked(client, pending, { full, shows: 'f' }, signal)}\n`)
    const answer = await ask(asking, full || pending.next === null, async () => {
      process.stdout.write(`${await wholeQuestion(client, pending, signal)}\n`)
    })
    if (answer === 'later') return
    if (answer === 'deny') await client.call('approvals/deny', { id }, { signal })
    else await client.call('approvals/approve', { id, scope: answer.scope }, { signal })
  } catch (error) {
    if (!signal.aborted) hint(visible(SallyportError.from(error).message))
  }
}

const answers: Readonly<Record<string, Answer>> = {
  y: { scope: 'once' },
  s: { scope: 'session' },
  p: { scope: 'policy' },
  n: 'deny',
  '': 'later',
}

/** What the person says; of a question that is not shown whole nothing that is for more than its call. */
async function ask(
  { person, signal }: Asking,
  isWhole: boolean,
  showWhole: () => Promise<void>,
): Promise<Answer> {
  const { keyboard } = person
  await looked(signal)
  if (
    person.isUnaware &&
    (await keyboard.line('the one before is over; enter to answer this one: ', signal)) === null
  )
    return 'later'
  person.isUnaware = false
  for (let isShown = isWhole; ;) {
    const said = await keyboard.line(isShown ? 'y/n/s/p? ' : 'y/n/f? ', signal)
    if (said === null) {
      person.isUnaware = true
      return 'later'
    }
    const answer = Object.hasOwn(answers, said) ? answers[said] : undefined
    if (said === 'f') {
      await showWhole()
      isShown = true
      await looked(signal)
    } else if (!isShown && (said === 's' || said === 'p')) hint(unshown)
    else if (answer !== undefined) return answer
  }
}
