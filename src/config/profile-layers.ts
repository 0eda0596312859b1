// A profile's file, the file of what it extends, and so on up: found by name, read, parsed and validated.
import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SallyportError } from '../errors.ts'
import { isMissing } from '../lib/missing.ts'
import { nearest } from '../lib/nearest.ts'
import type { Profile } from '../schema/types.gen.ts'
import { validate } from '../schema/validate.ts'
import { parseDocument, type Document } from './document.ts'
import { enterpriseFolder, userFolder } from './find.ts'
import type { Host } from './host.ts'
import { isThere } from './is-there.ts'
import { mended } from './profile-mend.ts'
import { type Named, onNamed, refusalOf } from './named-file.ts'
import { readTrusted } from './read.ts'
import { issue, refuse, type Issue } from './refusal.ts'

/** Folder of the profiles that ship; whoever can write there can write this program, so it is not judged. */
export const shippedFolder = fileURLToPath(new URL('../../profiles', import.meta.url))

/** Where profiles are looked for, and whose files are believed. */
export interface ProfileSearch {
  /** Folders, the shipped one is always the last and need not be named */
  readonly folders: readonly string[]
  /** Uids beside root that may own a profile's file */
  readonly owners: readonly number[]
}

/** One profile as its own file says it, before what it extends is folded in. */
export interface ProfileLayer {
  readonly name: string
  readonly document: Document
  /** With the schema's defaults where the file says nothing */
  readonly profile: Profile
}

/** The folders of section 6, in order: beside the configuration file, the user's, the machine's. */
export function profileSearch(
  host: Host,
  places: { readonly configFolder?: string; readonly enterprise?: string } = {},
): ProfileSearch {
  const besides = places.configFolder === undefined ? [] : [places.configFolder]
  const folders = [...besides, userFolder(host), places.enterprise ?? enterpriseFolder].map((at) =>
    join(at, 'profiles'),
  )
  return { folders: [...new Set(folders)], owners: [host.uid] }
}

/** What is wrong with a file whose other parts are read all the same. */
export type Tell = (issues: readonly Issue[]) => void

/**
 * Reads a profile, named or by path, then what it extends; the profile itself comes first. What is wrong with a file is
 * refused, or told, where there is somebody to tell, and read as `mended` makes it.
 */
export async function readLayers(
  nameOrPath: string,
  search: ProfileSearch,
  tell: Tell = refuse,
): Promise<readonly ProfileLayer[]> {
  const layers: ProfileLayer[] = []
  let next: string | null = nameOrPath
  let within = search
  while (next !== null) {
    const layer: ProfileLayer = await readLayer(next, within, layers.at(-1), tell)
    if (layers.some(({ name }) => name === layer.name)) throw cycle([...layers, layer])
    layers.push(layer)
    if (isPath(next))
      within = { ...search, folders: [...new Set([dirname(layer.document.path), ...search.folders])] }
    next = layer.profile.extends
  }
  return layers
}

/** Names of all profiles that can be found, with their files; one that two folders hold is listed twice. */
export async function findProfiles(
  search: ProfileSearch,
): Promise<readonly { name: string; path: string }[]> {
  const found: { name: string; path: string }[] = []
  for (const folder of allFolders(search)) {
    for (const file of (await entries(folder)).sort())
      if (file.endsWith('.yaml'))
        found.push({ name: file.slice(0, -'.yaml'.length), path: join(folder, file) })
  }
  return found
}

export const isPath = (nameOrPath: string): boolean =>
  nameOrPath.includes('/') || /\.(yaml|yml|json)$/.test(nameOrPath)

const allFolders = ({ folders }: ProfileSearch): readonly string[] => [
  ...new Set([...folders, shippedFolder]),
]

async function readLayer(
  nameOrPath: string,
  search: ProfileSearch,
  child: ProfileLayer | undefined,
  tell: Tell,
): Promise<ProfileLayer> {
  const path = isPath(nameOrPath) ? resolve(nameOrPath) : await findOne(nameOrPath, search, child)
  const document = await readDocument(path, search)
  const validated = validate('profile', document.value)
  if (!validated.ok)
    tell(validated.problems.map((problem): Issue => ({ code: 'ERR_PROFILE_INVALID', document, problem })))
  const read = validated.ok ? { value: document.value, profile: validated.value } : mended(document.value)
  if (read === null) throw new SallyportError('ERR_PROFILE_INVALID', `${path}: nothing of it can be read`)
  const { value, profile } = read
  const fileName = basename(path).replace(/\.(yaml|yml|json)$/, '')
  if (profile.name !== fileName)
    tell([
      issue('ERR_PROFILE_INVALID', document, ['name'], { expected: `${fileName}, the name of its file` }),
    ])
  return { name: profile.name, document: { ...document, value }, profile }
}

async function readDocument(path: string, { owners }: ProfileSearch): Promise<Document> {
  const text =
    dirname(path) === shippedFolder
      ? readFile(path, 'utf8')
      : readTrusted(path, owners).then((file) => file.text)
  return parseDocument(
    path,
    await text.catch((error: unknown) => {
      if (!isMissing(error)) throw refusalOf(error, theirs(path)) ?? error
      const said = `${path}: no such profile file`
      throw new SallyportError('ERR_PROFILE_UNKNOWN', said, { file: path }, { cause: error })
    }),
  )
}

/** What is not known to hold no profile of that name may hold one, which decides. */
const theirs = (path: string): Named => ({
  path,
  access: 'read',
  code: 'ERR_CONFIG_NOT_FOUND',
  mend: 'make it readable to whoever is to use its profiles',
})

/** A name that two folders hold is refused: no profile may quietly stand in for another, least of all for a shipped one. */
async function findOne(
  name: string,
  search: ProfileSearch,
  child: ProfileLayer | undefined,
): Promise<string> {
  const paths: string[] = []
  for (const folder of allFolders(search)) {
    const path = join(folder, `${name}.yaml`)
    if (isProfileName(name) && (await onNamed(theirs(path), () => isThere(path)))) paths.push(path)
  }
  const [path, second] = paths
  if (path === undefined) throw await unknown(name, search, child)
  if (second === undefined) return path
  const shipped =
    dirname(paths.at(-1) ?? '') === shippedFolder
      ? 'the shipped profile of that name cannot be replaced'
      : 'two files have it'
  throw new SallyportError(
    'ERR_PROFILE_INVALID',
    `${path}: got the name ${name}, expected one of its own: ${shipped} (${paths.slice(1).join(', ')}); rename it`,
    { file: path, path: 'name', got: name, files: paths },
  )
}

const isProfileName = (name: string): boolean => /^[A-Za-z0-9_.-]{1,128}$/.test(name)

async function unknown(
  name: string,
  search: ProfileSearch,
  child: ProfileLayer | undefined,
): Promise<SallyportError> {
  const known = [...new Set((await findProfiles(search)).map((each) => each.name))]
  const meant = nearest(name, known)
  const expected = `one of ${known.join(', ')}`
  const mend = meant === null ? `write it in one of ${search.folders.join(', ')}` : `did you mean ${meant}?`
  const place = child?.document.locate(['extends'], 'value')
  const where =
    child === undefined
      ? 'profile'
      : `${child.document.path}:${place?.line ?? 1}:${place?.column ?? 1}: extends`
  const got = JSON.stringify(name)
  return new SallyportError('ERR_PROFILE_UNKNOWN', `${where}: got ${got}, expected ${expected}; ${mend}`, {
    got: name,
    expected,
    mend,
  })
}

function cycle(layers: readonly ProfileLayer[]): SallyportError {
  const names = layers.map(({ name }) => name).join(' -> ')
  const [first] = layers
  return new SallyportError(
    'ERR_PROFILE_INVALID',
    `${first?.document.path}: got ${names}, expected profiles that do not extend themselves; cut the circle`,
    { file: first?.document.path ?? null, path: 'extends', got: names },
  )
}

async function entries(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (isMissing(error)) return []
    throw refusalOf(error, theirs(folder)) ?? error
  }
}
