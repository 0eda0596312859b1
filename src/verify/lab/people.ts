// What a verification plants of people's: a home with every name that no server may have, and projects with what the host runs.
import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { homeNames, projectNames } from './names.ts'

/** Where each thing is below the folder of `plantPeople`. */
export const peoplesPlaces = {
  /** A home in which each name is */
  home: 'home',
  /** A link to it */
  moved: 'moved',
  /** What a name of that home is a link to */
  elsewhere: 'elsewhere',
  /** A link to a name of that home */
  alias: 'alias',
  /** A home in which nothing is yet */
  newcomer: 'newcomer',
  /** A project with each name in it, and one with a link in the place of its repository */
  project: 'projects/one',
  linked: 'linked',
  /** Three of the former: more names than are held */
  projects: 'projects',
} as const

/** The name of the home that is a link. */
export const linkedName = '.gnupg'

/** Synchronous: a few hundred files are made in the time that it takes to ask for them. */
export const plantPeople = (root: string, word: string): void => {
  const at = (place: keyof typeof peoplesPlaces): string => join(root, peoplesPlaces[place])
  for (const place of ['home', 'elsewhere', 'newcomer', 'linked'] as const)
    mkdirSync(at(place), { recursive: true })
  write(join(at('elsewhere'), 'key'), word)
  symlinkSync(at('elsewhere'), join(at('home'), linkedName))
  const holders = new Set(homeNames.flatMap((name) => above(name)))
  for (const name of homeNames)
    if (name !== linkedName && !holders.has(name)) write(join(at('home'), name, 'key'), word)
  symlinkSync(at('home'), at('moved'))
  symlinkSync(join(at('home'), '.aws'), at('alias'))
  for (const project of ['one', 'two', 'three'])
    for (const name of projectNames) write(join(at('projects'), project, name), word)
  symlinkSync(join(at('project'), '.git'), join(at('linked'), '.git'))
  openAll(root)
}

/** Names that are folders of `plantProject`, one in the other, in the innermost of which is another repository. */
export const nested = ['inner', 'more', 'most'] as const

/** A project that anybody may write to, with a file to which a protected name is a link. */
export const plantProject = (root: string): void => {
  write(join(root, '.git', 'config'), '')
  write(join(root, ...nested, '.git', 'config'), '')
  write(join(root, 'settings', 'agent.json'), '')
  symlinkSync(join('settings', 'agent.json'), join(root, '.mcp.json'))
  openAll(root)
}

const above = (name: string): string[] =>
  dirname(name) === '.' ? [] : [dirname(name), ...above(dirname(name))]

const write = (path: string, content: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}

/** So that nothing but Sallyport's own judgement is in the way. */
const openAll = (root: string): void => {
  for (const entry of readdirSync(root, { withFileTypes: true, recursive: true }))
    if (!entry.isSymbolicLink()) chmodSync(join(entry.parentPath, entry.name), entry.isFile() ? 0o666 : 0o777)
}
