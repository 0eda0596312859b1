// What policy goes by is kept as it was said, and not redacted: whoever says a secret in it is told so instead.
import { SallyportError } from '../../errors.ts'
import type { Keeper } from '../../schema/redactor.ts'
import type { Registered } from '../entries.ts'

export type Finder = Pick<Keeper, 'secretIn' | 'shapeIn'>

/** Throws ERR_INVALID_PARAMS for an entry that holds a secret, as far as anybody can tell. */
export function expectOpenEntry(finder: Finder, { server, entry, directory }: Registered): void {
  const mend = 'hand it over by reference, under credentials, or say it otherwise'
  expectNone(finder.secretIn({ server, entry, directory }), `servers/add: the entry of ${server}`, mend)
}

/** The same of the name of a launch, which a host chose: that is told of shapes alone. */
export const expectOpenName = ({ shapeIn }: Finder, name: string): void =>
  expectNone(shapeIn(name), 'servers/launch: the name', 'choose another')

/** The same of a hold. */
export const expectOpenHold = (finder: Finder, said: readonly (string | null)[]): void =>
  expectNone(
    finder.secretIn(said),
    'servers/hold: what it covers, or its name,',
    'hold the server, or name it otherwise',
  )

function expectNone(secret: string | null, of: string, mend: string): void {
  if (secret === null) return
  throw new SallyportError(
    'ERR_INVALID_PARAMS',
    `${of} holds ${secret}, and would stand in the journal as it is; ${mend}`,
  )
}
