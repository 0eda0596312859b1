// Whether what a server lists is what was declared and accepted of it, for an operator who tests it.
import type { Ledger } from '../../call/ledger.ts'
import { refusals } from '../../call/refusal.ts'
import { SallyportError } from '../../errors.ts'
import { beginning } from '../../lib/clip.ts'
import type { Observation } from '../../schema/governor.ts'
import { passedOverWords } from './failure-events.ts'
import { expectListed } from './seen.ts'
import { ungiven } from './ungiven.ts'

/**
 * Returns how an observed instance stands against what was accepted, in words; that nothing was yet is no failure.
 *
 * @throws ERR_DECLARATION_MISMATCH, ERR_DECLARATION_MISSING, ERR_IDENTITY_CHANGED or what halted the server
 */
export async function validate(
  ledger: Pick<Ledger, 'accepted' | 'live' | 'quarantine' | 'standing'>,
  { server: settings, instance, tools }: Observation,
): Promise<string> {
  const { name: server, declaration } = settings
  if (declaration !== null) expectListed(server, declaration, tools)
  const accepted = ledger.accepted(server)
  if (accepted === null && ledger.quarantine(server) === null)
    return `nothing was accepted yet; see sallyport accept ${server}`
  const standing = ledger.standing(server, instance, 'method', 'tools/list')
  if (standing.state !== 'accepted')
    throw new SallyportError(refusals[standing.state], standing.reason, { server })
  const { changed = [], undeclared = [], missing = [] } = ledger.live(instance)?.change ?? {}
  if (changed.length > 0)
    throw new SallyportError(
      refusals.changed,
      `${some(changed)}: listed otherwise than when accepted; see sallyport accept ${server}`,
      { server, tools: changed },
    )
  if (undeclared.length > 0)
    throw new SallyportError(
      refusals.unaccepted,
      `${some(undeclared)}: listed, and not accepted; see sallyport accept ${server}`,
      { server, tools: undeclared },
    )
  const as = `as accepted, version ${standing.declarationVersion}`
  const left = ungiven(
    settings,
    [...(accepted?.tools.values() ?? [])].map((tool) => tool.declaration),
  )
  const live = ledger.live(instance)
  const unseen = [...tools.keys()].filter((name) => live?.digests.has(name) !== true)
  const parts = [
    ...(left === null
      ? []
      : [`no tool is declared with ${left}, which its entry gives; see sallyport accept ${server}`]),
    ...(unseen.length === 0 ? [] : [`not callable, since ${passedOverWords}: ${some(unseen.map(short))}`]),
    ...(live?.isFull === true ? [`of no more than ${tools.size} tools (tools.per_server)`] : []),
    ...(missing.length === 0 ? [] : [`not listed any more: ${some(missing)}`]),
  ]
  return [as, ...parts].join('; ')
}

/** Characters of a name that nobody has looked at */
const shown = 128

const short = (name: string): string => beginning(name, shown)

const some = (names: readonly string[]): string =>
  names.length <= 5 ? names.join(', ') : `${names.slice(0, 5).join(', ')} and ${names.length - 5} more`
