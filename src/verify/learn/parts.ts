// From what was watched to what a draft is made of: what was needed, and what was asked for in vain.
import { decideSyscalls } from '../../sandbox/syscalls.ts'
import type { EgressEvent } from '../../schema/egress.ts'
import type { DraftParts } from './draft.ts'
import { needsOf, unwritten } from './grants.ts'
import type { Observation } from './observation.ts'
import type { LearnOptions } from './options.ts'
import type { View, Withheld } from './view.ts'
import type { Watched } from './watch.ts'

/** Returns the parts of a draft. */
export const partsOf = (options: LearnOptions, view: View, { ran, observation }: Watched): DraftParts => {
  const { name, command, args, write, allow, pass, set, network } = options
  return {
    name,
    command: [command, ...args].join(' '),
    needs: needsOf(observation, view, write, allow, ran.egress),
    pass,
    set,
    hasNetwork: network === 'observe',
    withheld: [
      ...view.withheld,
      ...unwritten(observation, write).map((path) => ({
        path,
        why: 'it wanted to write there; name its folder with --write where it may',
      })),
      ...refusedHosts(ran.egress),
      ...(network === 'none'
        ? observation.addresses.map(({ address, port }) => ({
            path: `${address}:${port}`,
            why: 'there was no network',
          }))
        : []),
    ],
    refusedCalls: callsIn(observation).refused,
    callCount: observation.calls.size,
  }
}

const refusedHosts = (egress: readonly EgressEvent[]): readonly Withheld[] => {
  const refused = egress.filter(({ kind, host }) => kind === 'refused' && host !== '')
  const told = new Map(
    refused.map(({ host, port, reason }) => [
      `${host}${port === null ? '' : `:${port}`}`,
      reason ?? 'refused',
    ]),
  )
  return [...told].map(([path, why]) => ({ path, why: `no host that was allowed (${why})` }))
}

/** Names of the calls that were made, and of those the ones that the filter never allows and that were refused. */
export const callsIn = ({
  calls,
}: Observation): { readonly made: readonly string[]; readonly refused: readonly string[] } => {
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
  const verdicts = [...decideSyscalls({ base: 'strict', allow: [], deny: [] }, 'allowlist').values()]
  const made = verdicts.filter(({ numbers }) => calls.has(numbers[arch] ?? -1))
  const refused = made.filter(
    ({ numbers, rules }) =>
      (calls.get(numbers[arch] ?? -1)?.refused ?? 0) > 0 && rules.every(({ action }) => action !== 'allow'),
  )
  return { made: made.map(({ name }) => name), refused: refused.map(({ name }) => name) }
}
