// A profile with everything that it extends folded in, no wider than any of it, and the line that decided each value.
import { basename } from 'node:path'
import { refusedFamily } from '../lib/environment-families.ts'
import { ownNames } from '../lib/own-variables.ts'
import type { Step } from '../schema/problem.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import type { Profile } from '../schema/types.gen.ts'
import { checkAssertions, statedIn } from './assertions.ts'
import type { Document } from './document.ts'
import { whyNoHost, whyNotPinned } from './egress.ts'
import { keyRules } from './narrowing.ts'
import { readLayers, type ProfileLayer, type ProfileSearch } from './profile-layers.ts'
import { issue, refuse, type Issue } from './refusal.ts'

/**
 * Loads a profile by name or path. ERR_PROFILE_UNKNOWN where there is none, ERR_PROFILE_INVALID where a file is wrong,
 * ERR_PROFILE_WIDENS where a child grants more than its parent without `widens: true`, ERR_ENVIRONMENT_REFUSED where a
 * variable's family is refused and no override stands beside it.
 */
export async function loadProfile(nameOrPath: string, search: ProfileSearch): Promise<ProfileSettings> {
  const layers = await readLayers(nameOrPath, search)
  refuse(checkLayers(layers))
  return foldLayers(layers)
}

/** Everything that is wrong with a chain of profiles whose files are each valid. */
export function checkLayers(layers: readonly ProfileLayer[]): readonly Issue[] {
  return layers.flatMap((layer, index) => [
    ...checkEnvironment(layer),
    ...checkAllowed(layer),
    ...checkAssertions('ERR_PROFILE_INVALID', layer.document, layer.profile.assertions),
    ...(index + 1 < layers.length && !layer.profile.widens ? checkWidth(layers.slice(index)) : []),
  ])
}

/** Folds a chain, the profile itself first, into one profile in which every value is decided. */
export function foldLayers(layers: readonly ProfileLayer[]): ProfileSettings {
  const [own] = layers
  if (own === undefined) throw new RangeError('a profile has at least one layer')
  const merged = mergeLayers(layers)
  return {
    name: own.name,
    description: own.profile.description,
    path: own.document.path,
    layers: layers.map(({ name }) => name),
    ...settingsOf(merged),
    assertions: statedIn(own.document, own.profile.assertions),
    decidedAt: decisions(layers, merged),
  }
}

/** The values of a chain: each key is what the first layer that states it says, else the schema's default. */
export function mergeLayers(
  layers: readonly { readonly document: Pick<Document, 'value'>; readonly profile: Profile }[],
): Profile {
  const last = layers.at(-1)
  if (last === undefined) throw new RangeError('a profile has at least one layer')
  const merged = structuredClone(last.profile)
  for (const { path } of keyRules) {
    const stating = layers.find(({ document }) => at(document.value, path) !== undefined)
    if (stating !== undefined) put(merged, path, at(stating.profile, path))
  }
  return merged
}

function checkAllowed({ document, profile }: ProfileLayer): readonly Issue[] {
  return profile.network.allow.flatMap((entry, index) => {
    const unread = whyNoHost(entry)
    const place = ['network', 'allow', index]
    if (unread !== null) return [issue('ERR_PROFILE_INVALID', document, [...place, 'host'], unread)]
    const wrong = whyNotPinned(entry)
    return wrong === null ? [] : [issue('ERR_PROFILE_INVALID', document, [...place, 'address'], wrong)]
  })
}

function checkWidth(chain: readonly ProfileLayer[]): readonly Issue[] {
  const [child] = chain
  if (child === undefined) return []
  const [own, parent] = [mergeLayers(chain), mergeLayers(chain.slice(1))]
  return keyRules.flatMap(({ path, wider }) =>
    wider(own, parent).map((each) =>
      issue('ERR_PROFILE_WIDENS', child.document, [...path, ...each.at], {
        got: each.got,
        expected: `${each.expected} (as ${child.profile.extends} has it)`,
        mend: 'narrow it, or say `widens: true`',
      }),
    ),
  )
}

function checkEnvironment({ document, profile: { environment } }: ProfileLayer): readonly Issue[] {
  const refused = (name: string, steps: readonly Step[]): readonly Issue[] => {
    const family = refusedFamily(name)
    if (family === null) return []
    const said = {
      got: name,
      expected: `no variable of the family ${family}`,
      mend: 'remove it, or give it an `override` with the reason',
    }
    return [issue('ERR_ENVIRONMENT_REFUSED', document, steps, said)]
  }
  const kept = environment.pass.flatMap((entry, index): readonly Issue[] => {
    const got = typeof entry === 'string' ? entry : entry.name
    if (!ownNames.has(got)) return []
    const said = {
      got,
      expected: `no variable of which the sandbox has its own (${[...ownNames].join(', ')})`,
      mend: 'remove it, or state a value under `set`',
    }
    return [issue('ERR_ENVIRONMENT_REFUSED', document, ['environment', 'pass', index], said)]
  })
  return [
    ...kept,
    ...environment.pass.flatMap((entry, index) =>
      typeof entry === 'string' && !ownNames.has(entry) ? refused(entry, ['environment', 'pass', index]) : [],
    ),
    ...Object.entries(environment.set).flatMap(([name, entry]) =>
      typeof entry === 'string' ? refused(name, ['environment', 'set', name]) : [],
    ),
  ]
}

function settingsOf(
  merged: Profile,
): Omit<ProfileSettings, 'name' | 'description' | 'path' | 'layers' | 'assertions' | 'decidedAt'> {
  const { filesystem, network, credentials, exec, environment, syscalls, limits } = merged
  const { pass, set } = environment
  return {
    filesystem: {
      read: filesystem.read,
      write: filesystem.write,
      mounts: filesystem.mounts,
      tmpBytes: filesystem.tmp_bytes,
      home: filesystem.home,
    },
    network,
    credentials,
    exec,
    environment: {
      pass: pass.map((entry) => (typeof entry === 'string' ? entry : entry.name)),
      set: Object.fromEntries(
        Object.entries(set).map(([name, entry]) => [name, typeof entry === 'string' ? entry : entry.value]),
      ),
      override: Object.fromEntries([
        ...pass.flatMap((entry) =>
          typeof entry === 'string' ? [] : [[entry.name, entry.override] as const],
        ),
        ...Object.entries(set).flatMap(([name, entry]) =>
          typeof entry === 'string' ? [] : [[name, entry.override] as const],
        ),
      ]),
    },
    syscalls,
    limits: {
      memoryBytes: limits.memory_bytes,
      pids: limits.pids,
      cpu: limits.cpu,
      openFiles: limits.open_files,
      fileBytes: limits.file_bytes,
      enforcement: limits.enforcement,
    },
  }
}

/** `filesystem.read[0]` -> `offline.yaml:12`, for each key and each part of a list or mapping. */
function decisions(layers: readonly ProfileLayer[], merged: Profile): Readonly<Record<string, string>> {
  const decided: [string, string][] = []
  for (const { path } of keyRules) {
    const document = layers.find((layer) => at(layer.document.value, path) !== undefined)?.document
    const note = (name: string, steps: readonly Step[], part: 'key' | 'value'): void => {
      const line = document?.locate(steps, part)?.line
      decided.push([name, document === undefined ? 'default' : `${basename(document.path)}:${line ?? 1}`])
    }
    const name = path.join('.')
    note(name, path, 'key')
    const value = at(merged, path)
    if (Array.isArray(value))
      for (const index of value.keys()) note(`${name}[${index}]`, [...path, index], 'value')
    else if (typeof value === 'object' && value !== null)
      for (const key of Object.keys(value)) note(`${name}.${key}`, [...path, key], 'key')
  }
  return Object.fromEntries(decided)
}

function at(value: unknown, path: readonly string[]): unknown {
  let node = value
  for (const step of path) {
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, step)) return undefined
    node = (node as Record<string, unknown>)[step]
  }
  return node
}

function put(target: object, path: readonly string[], value: unknown): void {
  const holder = at(target, path.slice(0, -1)) ?? target
  const key = path.at(-1)
  if (key !== undefined) (holder as Record<string, unknown>)[key] = value
}
