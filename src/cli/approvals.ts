// `sallyport approvals`: the questions that wait for a person, and with `--watch` the person who answers them.
import type { Command } from 'commander'
import type { OperatorMethods } from '../rpc/protocol.ts'
import type { PendingApproval } from '../rpc/approvals.ts'
import { watch } from './approvals-watch.ts'
import { hint, printJson, printTable } from './output.ts'
import { wholeQuestion } from './question.ts'
import { reach, reaching } from './reach.ts'
import type { ReachOptions } from './reach.ts'

interface ApprovalsOptions extends ReachOptions {
  readonly watch?: boolean
  readonly full?: boolean
}

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

const seconds = (ms: number): string => `${Math.round(ms / 1000)}s`
