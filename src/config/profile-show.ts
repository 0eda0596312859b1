// A profile as it stands once everything is folded in, in the words of a profile's file, and the list of all there are.
import { dirname } from 'node:path'
import { SallyportError } from '../errors.ts'
import { own } from '../lib/own.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import { formatPath, type Step } from '../schema/problem.ts'
import { formatDocument } from './document.ts'
import { loadProfile } from './profile.ts'
import { findProfiles, shippedFolder, type ProfileSearch } from './profile-layers.ts'

/** A resolved profile: every key stated, nothing extended. */
export interface ShownProfile {
  readonly version: 1
  readonly name: string
  readonly description: string
  readonly layers: readonly string[]
  readonly filesystem: object
  readonly network: object
  readonly credentials: readonly string[]
  readonly exec: string
  readonly environment: object
  readonly syscalls: object
  readonly limits: object
  readonly assertions: readonly object[]
  readonly decided_at: Readonly<Record<string, string>>
}

/** Puts a resolved profile into the keys of a profile's file, with the line that decided each value. */
export function showProfile(profile: ProfileSettings): ShownProfile {
  const { filesystem, environment, limits } = profile
  const { override } = environment
  return {
    version: 1,
    name: profile.name,
    description: profile.description,
    layers: profile.layers,
    filesystem: {
      read: filesystem.read,
      write: filesystem.write,
      mounts: filesystem.mounts,
      tmp_bytes: filesystem.tmpBytes,
      home: filesystem.home,
    },
    network: profile.network,
    credentials: profile.credentials,
    exec: profile.exec,
    environment: {
      pass: environment.pass.map((name) =>
        own(override, name) === undefined ? name : { name, override: own(override, name) },
      ),
      set: Object.fromEntries(
        Object.entries(environment.set).map(([name, value]) => [
          name,
          own(override, name) === undefined ? value : { value, override: own(override, name) },
        ]),
      ),
    },
    syscalls: profile.syscalls,
    limits: {
      memory_bytes: limits.memoryBytes,
      pids: limits.pids,
      cpu: limits.cpu,
      open_files: limits.openFiles,
      file_bytes: limits.fileBytes,
      enforcement: limits.enforcement,
    },
    assertions: profile.assertions.map(({ text, reason }) => ({ assert: text, reason })),
    decided_at: profile.decidedAt,
  }
}

/** The same as YAML, each value with a comment that names file and line: a profile by itself, which says what the chain says. */
export function formatProfile(shown: ShownProfile): string {
  const { decided_at: decidedAt, layers, ...profile } = shown
  const text = formatDocument(profile, (at: readonly Step[]) => own(decidedAt, formatPath(at)) ?? null)
  return layers.length > 1 ? `# ${layers.join(', which extends ')}\n${text}` : text
}

export interface ListedProfile {
  readonly name: string
  readonly path: string
  readonly shipped: boolean
  /** What it is for, or why it does not load */
  readonly description: string
  readonly valid: boolean
  readonly extends: string | null
  readonly mounts: string | null
  readonly network: string | null
}

/** Lists every profile that can be found; one that does not load is listed with the reason. */
export async function listProfiles(search: ProfileSearch): Promise<readonly ListedProfile[]> {
  const found = await findProfiles(search)
  return await Promise.all(
    found.map(async ({ name, path }): Promise<ListedProfile> => {
      const shipped = dirname(path) === shippedFolder
      try {
        const { description, layers, filesystem, network } = await loadProfile(name, search)
        const about = { extends: layers[1] ?? null, mounts: filesystem.mounts, network: network.mode }
        return { name, path, shipped, description, valid: true, ...about }
      } catch (error) {
        if (!(error instanceof SallyportError)) throw error
        return {
          name,
          path,
          shipped,
          description: error.message,
          valid: false,
          extends: null,
          mounts: null,
          network: null,
        }
      }
    }),
  )
}
