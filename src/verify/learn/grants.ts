// From what was seen to what is needed: paths as tight as is sensible, each with what used it.
import { basename, dirname } from 'node:path'
import { isWithin, overlapOf } from '../../lib/path-overlap.ts'
import type { Grant, NetworkGrant } from '../../schema/settings.ts'
import type { EgressEvent } from '../../schema/egress.ts'
import type { Observation, SeenPath } from './observation.ts'
import type { View } from './view.ts'

/** What a server needed, in the terms of a profile. */
export interface Needs {
  readonly read: readonly Grant[]
  /** A folder that was listed -> what was used in it, which may do in its place */
  readonly narrower: ReadonlyMap<string, readonly Grant[]>
  readonly write: readonly Grant[]
  readonly network: readonly NetworkGrant[]
  /** Whether it started another program than itself, and which */
  readonly started: readonly string[]
  readonly peaks: Pick<Observation, 'memoryBytes' | 'threads' | 'descriptors' | 'scratchBytes'>
}

/** Files of one folder, and packages of one node_modules, beyond which the folder is granted whole */
export const filesApart = 4
const packagesApart = 24

/** Returns what a draft grants for what was seen in this view; `writable` and `allowed` are what a person offered. */
export const needsOf = (
  seen: Observation,
  view: View,
  writable: readonly string[],
  allowed: readonly NetworkGrant[],
  egress: readonly EgressEvent[],
): Needs => {
  const worked = seen.paths.filter(({ errno }) => errno === 0)
  const { descriptors, memoryBytes, scratchBytes, threads } = seen
  return {
    ...reads(worked, view),
    write: writes(worked, writable),
    network: allowed.flatMap((grant) => hostsOf(grant, egress)),
    started: seen.started.slice(1),
    peaks: { descriptors, memoryBytes, scratchBytes, threads },
  }
}

const reads = (worked: readonly SeenPath[], view: View): Pick<Needs, 'read' | 'narrower'> => {
  const places = new Map<string, SeenPath[]>()
  const note = (place: string, seen: SeenPath): void =>
    void places.set(place, [...(places.get(place) ?? []), seen])
  for (const seen of worked)
    for (const path of new Set([seen.path, seen.real ?? seen.path])) {
      const holder = view.holderOf(path)
      if (holder === null) continue
      // A person who named a folder meant the folder.
      if (holder.origin !== 'code') note(holder.path, seen)
      else if (seen.use !== 'look' || seen.real !== null || !holder.isFolder) note(placeOf(path), seen)
    }
  const merged = mergePackages(mergeFiles(places, view))
  const within = (folder: string): [string, readonly SeenPath[]][] =>
    [...merged].filter(([path]) => path !== folder && isWithin(path, folder))
  // A folder that stands for files that were merged into it has nothing narrower.
  const listed = [...merged.keys()].filter((path) => merged.get(path) === places.get(path))
  const narrower = listed.map((folder) => [folder, outermost(within(folder))] as const)
  return {
    read: outermost([...merged]),
    narrower: new Map(narrower.filter(([, inside]) => inside.length > 0)),
  }
}

/** Grants of the places that no other of them holds, by path. */
const outermost = (places: readonly (readonly [string, readonly SeenPath[]])[]): readonly Grant[] =>
  places
    .filter(([path]) => !places.some(([other]) => other !== path && isWithin(path, other)))
    .map(([path, users]) => ({ path, reason: reasonOf(users) }))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))

/**
 * A package's own folder, where the path is in one; else the path itself. Of what pnpm laid out the whole node_modules: its packages
 * find each other by links, which are there only with the folder that they are in.
 */
const placeOf = (path: string): string =>
  /^(.*?\/node_modules)\/\.pnpm\//.exec(path)?.[1] ??
  /^.*\/node_modules\/(?:@[^/]+\/)?[^/@.][^/]*/.exec(path)?.[0] ??
  /^.*\/(?:site|dist)-packages\/[^/]+/.exec(path)?.[0] ??
  path

/** Only into a folder that was shown whole: another may hold what nothing grants. */
const mergeFiles = (places: ReadonlyMap<string, SeenPath[]>, view: View): Map<string, SeenPath[]> => {
  const merged = new Map(places)
  const folders = Map.groupBy(
    [...places.keys()].filter((path) => !isPackage(path)),
    (path) => dirname(path),
  )
  for (const [folder, files] of folders) {
    if (files.length <= filesApart || view.holderOf(folder) === null) continue
    merged.set(
      folder,
      files.flatMap((file) => places.get(file) ?? []),
    )
    for (const file of files) merged.delete(file)
  }
  return merged
}

const mergePackages = (places: ReadonlyMap<string, SeenPath[]>): Map<string, SeenPath[]> => {
  const merged = new Map(places)
  const trees = Map.groupBy([...places.keys()].filter(isPackage), treeOf)
  for (const [tree, packages] of trees) {
    if (packages.length <= packagesApart) continue
    merged.set(
      tree,
      packages.flatMap((each) => places.get(each) ?? []),
    )
    for (const each of packages) merged.delete(each)
  }
  return merged
}

const treeOf = (path: string): string =>
  /^.*\/(?:node_modules|(?:site|dist)-packages)(?=\/)/.exec(path)?.[0] ?? path

const isPackage = (path: string): boolean => /\/(node_modules|site-packages|dist-packages)\//.test(path)

/** Of what a person let it write to, what it wrote to or read from. */
const writes = (worked: readonly SeenPath[], writable: readonly string[]): readonly Grant[] =>
  writable.flatMap((folder) => {
    const users = worked.filter(({ path, real }) => isWithin(path, folder) || isWithin(real ?? path, folder))
    return users.length === 0 ? [] : [{ path: folder, reason: reasonOf(users) }]
  })

const hostsOf = (grant: NetworkGrant, egress: readonly EgressEvent[]): readonly NetworkGrant[] => {
  const opened = egress.filter(
    ({ kind, host, port }) =>
      kind === 'opened' &&
      port === grant.port &&
      (host === grant.host || (grant.host.startsWith('*.') && host.endsWith(grant.host.slice(1)))),
  )
  const hosts = [...new Set(opened.map(({ host }) => host))]
  return hosts.map((host) => {
    const count = opened.filter((event) => event.host === host).length
    return { ...grant, host, reason: `learned: ${count} ${count === 1 ? 'connection' : 'connections'}` }
  })
}

const words = { read: 'read', look: 'looked at', change: 'written', execute: 'executed' } as const

/** Who did what there, such as `learned: node read 12 paths, e.g. index.js`. */
const reasonOf = (users: readonly SeenPath[]): string => {
  const programs = [...new Set(users.flatMap((seen) => [...seen.programs].map((path) => basename(path))))]
  const uses = [...new Set(users.map(({ use }) => words[use]))]
  const paths = [...new Set(users.map(({ path }) => path))]
  const [first = ''] = paths
  const what = paths.length === 1 ? basename(first) : `${paths.length} paths, e.g. ${basename(first)}`
  return printable(`learned: ${uses.join(', ')} by ${programs.join(', ') || 'the server'}: ${what}`)
}

// Names of files are the server's to choose, and this is read by people and by a parser.
const printable = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]/g, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
    .slice(0, 200)

/** Paths that were asked for in vain and are there on the host, most wanted first. */
export const missingOf = (seen: Observation): readonly SeenPath[] =>
  seen.paths.filter(({ errno, use }) => [2, 13, 20, 30].includes(errno) && use !== 'change')

/** What it wanted to change and could not. */
export const unwritten = (seen: Observation, writable: readonly string[]): readonly string[] => [
  ...new Set(
    seen.paths
      .filter(({ errno, use }) => use === 'change' && [1, 2, 13, 30].includes(errno))
      .map(({ path }) => path)
      .filter((path) => !writable.some((folder) => overlapOf(path, folder) !== 'apart')),
  ),
]
