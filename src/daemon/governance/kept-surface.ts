// A surface as it may be kept: what is accepted stands in the journal as it was listed, so nothing with a credential's value is.
import type { AcceptedSurface } from '../../call/declaration.ts'
import { SallyportError } from '../../errors.ts'
import type { Observation } from '../../schema/governor.ts'
import type { Keeper } from '../../schema/redactor.ts'
import { type Reading, readSurface, type Seen } from './seen.ts'

export interface KeptReading extends Reading {
  readonly keeper: Pick<Keeper, 'valueIn'>
}

/** Stands for a version that can't be kept */
const withheld = '[redacted]'

/** As `readSurface`; what holds a value is no tool, unless it is as it was accepted. */
export function readKept(
  observed: Omit<Observation, 'instance'>,
  reading: KeptReading,
  before: AcceptedSurface | null,
): Seen {
  const { keeper } = reading
  const seen = readSurface(observed, reading, before)
  const [tools, digests, unreadable] = [new Map(seen.tools), seen.digests, new Map(seen.unreadable)]
  for (const [name, digest] of digests) {
    if (before?.tools.get(name)?.surfaceDigest === digest) continue
    const what = keeper.valueIn(tools.get(name)?.declaration ?? name)
    if (what === null) continue
    tools.delete(name)
    digests.delete(name)
    unreadable.set(name, `it holds ${what}`)
  }
  const { saidVersion } = seen
  const isKept = saidVersion === before?.saidVersion || keeper.valueIn(saidVersion) === null
  return {
    ...seen,
    tools,
    unreadable,
    saidVersion: isKept ? saidVersion : withheld,
    passedOver: [...seen.passedOver, ...[...unreadable.keys()].filter((name) => seen.tools.has(name))].filter(
      (name) => keeper.valueIn(name) === null,
    ),
  }
}

/** Throws ERR_DECLARATION_MISMATCH for tools that an operator named and that can't be kept. */
export function expectKept({ server, unreadable }: Seen, names: readonly string[]): void {
  for (const tool of names) {
    const why = unreadable.get(tool)
    if (why !== undefined)
      throw new SallyportError(
        'ERR_DECLARATION_MISMATCH',
        `${server.name}/${tool} can't be accepted: ${why}; see sallyport tools ${server.name}`,
        { server: server.name, tool },
      )
  }
}
