// `sallyport approvals`: the questions that wait for a person, and with `--watch` the person who answers them.
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import { SallyportError } from '../errors.ts'
import type { OperatorMethods } from '../rpc/protocol.ts'
import type { PendingApproval, SettledApproval } from '../rpc/governed.ts'
import { hanging, hint, jsonText, paint, printJson, printPiece, printTable, visible } from './output.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface ApprovalsOptions extends ReachOptions {
  readonly watch?: boolean
  readonly full?: boolean
}

type Answer = { readonly scope: 'once' | 'session' | 'policy' } | 'deny' | 'later'

export function registerApprovals(program: Command): void {
  reaching(program.command('approvals'))
    .description('list the calls that wait for your yes; with --watch, be the one who is asked')
    .option('-w, --watch', 'stay and answer; while anybody watches, calls that need a yes wait for it')
    .option('--full', 'show the arguments whole')
    .action((options: ApprovalsOptions) =>
      reach(options, 'operator', async ({ client, signal }) => {
        if (options.watch === true) return watch(client, options, signal)
        const result = await client.call('approvals/list', {}, { signal })
        if (options.json === true) return printJson(result)
        if (options.full === true)
          for (const one of result.pending)
            process.stdout.write(`${await wholeQuestion(client, one, signal)}\n`)
        else printPending(result.pending)
        printRest(result)
      }),
    )
}

function printPending(pending: readonly PendingApproval[]): void {
  if (pending.length > 0)
    printTable(
      ['ID', 'UID', 'WAITS', 'CALL'],
      pending.map((one) => [
        { text: one.id, style: 'yellow' },
        one.principal,
        `${seconds(one.waited_ms)} of ${seconds(one.deadline_ms)}`,
        one.summary,
      ]),
    )
}

function printRest({ pending, standing, listeners }: OperatorMethods['approvals/list']['result']): void {
  if (standing.length > 0)
    printTable(
      ['STANDS', 'SCOPE', 'UID', 'FOR', 'CALL'],
      standing.map((one) => [
        one.id,
        one.scope,
        one.principal,
        seconds(one.expires_in_ms),
        `${one.identity} with arguments ${one.arguments_digest.slice(0, 12)}`,
      ]),
    )
  if (pending.length === 0 && standing.length === 0) hint('nothing waits for approval, and none stands')
  if (listeners === 0) hint('nobody watches: every call that needs a yes is denied at once')
}

const keys = 'y once, s this session, p always for these arguments, n no, each with enter; enter alone later'
const noTerminal = 'without a terminal they are shown alone: answer with sallyport approve or sallyport deny'

async function watch(client: Client, options: ApprovalsOptions, signal: AbortSignal): Promise<void> {
  const asks = process.stdin.isTTY && process.stdout.isTTY && options.json !== true
  const open = new Map<string, AbortController>()
  const over = new AbortController()
  const watching = AbortSignal.any([signal, over.signal])
  const person: Person = { hasLeft: false, isUnaware: false }
  const leave = (): void => {
    person.hasLeft = true
    over.abort()
  }
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
        await printPiece(`${settledLine(params)}\n`, { signal })
      } else if (asks) {
        const gone = new AbortController()
        open.set(params.id, gone)
        const asking = { person, signal: AbortSignal.any([gone.signal, watching]), leave }
        // One question at a time; each ends when somebody else has answered it.
        turn = turn.then(() => put(client, params, options, asking))
      } else await printPiece(`${await asked(client, params, options, signal)}\n`, { signal })
    }
  } finally {
    over.abort() // a question that is still put would keep the terminal, and nobody takes its answer
    await turn
  }
  if (person.hasLeft) throw new SallyportError('ERR_CALL_CANCELLED', 'interrupted')
}

/** Who sits at the terminal. */
interface Person {
  hasLeft: boolean
  /** A question was taken away that was not answered: what is typed next may be its answer */
  isUnaware: boolean
}

interface Asking {
  readonly person: Person
  /** Aborted when the question is nobody's to answer any more */
  readonly signal: AbortSignal
  /** The person has left instead of an answer */
  readonly leave: () => void
}

/** Never rejects. */
async function put(
  client: Client,
  pending: PendingApproval,
  options: ApprovalsOptions,
  asking: Asking,
): Promise<void> {
  const { signal } = asking
  if (signal.aborted) return
  const { id } = pending
  try {
    process.stdout.write(`\n${await asked(client, pending, options, signal)}\n`)
    const answer = await ask(asking)
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

async function ask(asking: Asking): Promise<Answer> {
  const { person } = asking
  if (
    person.isUnaware &&
    (await lineOf('the one before is over; enter to answer this one: ', asking)) === null
  )
    return 'later'
  person.isUnaware = false
  for (;;) {
    const said = await lineOf('y/n/s/p? ', asking)
    if (said === null) {
      person.isUnaware = true
      return 'later'
    }
    const answer = Object.hasOwn(answers, said) ? answers[said] : undefined
    if (answer !== undefined) return answer
  }
}

/** What is typed at the prompt, in small letters; null where the question ends before. */
async function lineOf(prompt: string, { signal, leave }: Asking): Promise<string | null> {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  // Ctrl-C and Ctrl-D are read as keys while a question is put.
  lines.once('SIGINT', leave).once('close', leave)
  try {
    return (await lines.question(prompt, { signal })).trim().toLowerCase()
  } catch (error) {
    if (signal.aborted) return null
    throw error
  } finally {
    lines.off('close', leave)
    lines.close()
  }
}

async function asked(
  client: Client,
  pending: PendingApproval,
  { full }: ApprovalsOptions,
  signal: AbortSignal,
): Promise<string> {
  return full === true ? wholeQuestion(client, pending, signal) : questionOf(pending)
}

function questionOf({ id, principal, summary, reason }: PendingApproval): string {
  const lead = `${id} uid ${principal}: `
  const line = hanging(visible(summary), lead.length)
  return `${lead.replace(id, paint('yellow', id))}${line}\n${paint('dim', `  ${hanging(visible(reason), 2)}`)}`
}

/** The question with its arguments, however many answers they take. */
async function wholeQuestion(client: Client, pending: PendingApproval, signal: AbortSignal): Promise<string> {
  let [{ text, next }] = [pending]
  try {
    while (next !== null) {
      const piece = await client.call('approvals/text', { id: pending.id, offset: next }, { signal })
      text += piece.text
      next = piece.next
    }
  } catch (error) {
    if (SallyportError.from(error).code !== 'ERR_APPROVAL_NOT_FOUND') throw error
    text += '… (settled meanwhile)'
  }
  return `${questionOf(pending)}\n  ${hanging(visible(text), 2)}`
}

function settledLine({ id, granted, scope, by, reason }: SettledApproval): string {
  const who = by === null ? '' : ` by uid ${by}`
  if (granted === null) return `${paint('dim', id)} over: ${visible(reason ?? '')}`
  return granted
    ? `${paint('green', id)} granted${who}, ${scope ?? 'once'}`
    : `${paint('red', id)} not granted${who}: ${visible(reason ?? '')}`
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)}s`
