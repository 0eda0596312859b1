// What a launch answers to being asked for a variable: planned as any other, and taken back.
import { SallyportError } from '../../errors.ts'
import type { Lab } from './lab.ts'
import { planOf } from './try.ts'

/** By whose word a server is to have it: its entry's, or its profile's, who passes on the daemon's or sets one. */
export type Word = 'entry' | 'pass' | 'set'

/** What is asked for. `reason` is its entry's for what would be refused otherwise. */
export interface Wanted {
  readonly name: string
  readonly value: string
  readonly reason: string | null
}

/** Returns the code of the refusal, or nothing where it would be launched. */
export const refusalOf = async (lab: Lab, word: Word, wanted: Wanted): Promise<string> => {
  try {
    await planOf(asking(lab, word, wanted))
    return ''
  } catch (error) {
    return SallyportError.from(error).code
  }
}

const asking = (lab: Lab, word: Word, { name, value, reason }: Wanted): Lab => {
  const { server, profile } = lab
  if (word === 'entry') {
    const envOverride = reason === null ? server.envOverride : { ...server.envOverride, [name]: reason }
    return { ...lab, server: { ...server, env: { ...server.env, [name]: value }, envOverride } }
  }
  const { environment } = profile
  const more =
    word === 'pass' ? { pass: [...environment.pass, name] } : { set: { ...environment.set, [name]: value } }
  return { ...lab, profile: { ...profile, environment: { ...environment, ...more } } }
}
