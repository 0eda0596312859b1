// What a rule says that whoever wrote it may not have meant: it holds, and is told of.
import { isExact } from '../lib/glob.ts'
import { meant } from '../lib/nearest.ts'
import type { Rule, Settings } from '../schema/settings.ts'

/** One line for each pointer that is about one element of a list alone, and each glob that a shell would read otherwise. */
export function warningsOfRules(rules: readonly Rule[]): readonly string[] {
  return rules.flatMap(({ origin, where }) =>
    Object.entries(where).flatMap(([pointer, glob]) => [
      ...ofElement(origin, pointer),
      ...ofLetters(origin, glob),
    ]),
  )
}

/** One line for each rule about a server that is not there, and has nearly the name of one that is: any other may come yet, or be that of a run. */
export function warningsOfStrangers({
  rules,
  servers,
}: Pick<Settings, 'rules' | 'servers'>): readonly string[] {
  return rules.flatMap(({ origin, permission }) => {
    const [, server = ''] = permission.split(':')
    const slip = isExact(server) && !servers.has(server) ? meant(server, servers.keys()) : ''
    return slip === '' ? [] : [`${origin} is about the server ${server}, which is not there${slip}`]
  })
}

/** An object may have a number for a key, too. */
function ofElement(origin: string, pointer: string): readonly string[] {
  const every = pointer.replaceAll(/(?<=\/)(?:0|[1-9]\d*)(?=\/|$)/g, '*')
  if (every === pointer) return []
  return [
    `${origin} looks at ${JSON.stringify(pointer)}, which is one element where it leads to a list, and not at the others; write ${JSON.stringify(every)} for every one`,
  ]
}

/** A name may have them, and so has an address of a machine. */
function ofLetters(origin: string, glob: string): readonly string[] {
  if (glob.includes('://') || !/\[[^\]/]+\]|\{[^}/]*,[^}]*\}/.test(glob)) return []
  return [
    `${origin} has the glob ${JSON.stringify(glob)}, in which only * and ? stand for others, and [ and { for themselves; write a rule for each that is meant`,
  ]
}
