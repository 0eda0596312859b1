// Where bubblewrap finds the sources: at their own paths, or where the launcher of a root daemon binds them first.
import type { Mount } from '../spec.ts'

/** The folder, in the launcher's own mount namespace, that holds what it bound; the contract with `outer` */
const stagingFolder = '/tmp'

/** One thing for the launcher to bind, as root, before it drops. */
export interface StagedSource {
  readonly source: string
  readonly staging: string
}

export interface Staging {
  readonly staged: readonly StagedSource[]
  readonly stagedSource: (mount: Pick<Mount, 'source'>) => string
}

/**
 * Returns what is staged and where each source is found then.
 *
 * A root daemon stages everything: the dropped uid can't search folders such as /root, and the staging folder covers
 * whatever lay in it. A daemon that is not root stages nothing; it can bind only what it can reach anyway.
 */
export const stageSources = (sources: readonly string[], isRoot: boolean): Staging => {
  if (!isRoot) return { staged: [], stagedSource: ({ source }) => source }
  const names = new Map([...new Set(sources)].map((source, index) => [source, `${index}`]))
  return {
    staged: [...names].map(([source, staging]) => ({ source, staging })),
    stagedSource: ({ source }) => `${stagingFolder}/${names.get(source)}`,
  }
}
