// What tests learn from, and the draft that came of it, parsed.
import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import type { Learned } from '../../src/verify/learn/learn.ts'
import type { LearnOptions } from '../../src/verify/learn/options.ts'
import type { Verification } from '../../src/verify/result.ts'
import { tempDir } from './temp-dir.ts'

/** Calls of tools, and what a person offers. */
export type Asked = Partial<
  Pick<
    LearnOptions,
    'command' | 'args' | 'read' | 'write' | 'allow' | 'network' | 'pass' | 'set' | 'controls'
  >
> & {
  readonly calls?: readonly (readonly [tool: string, args: object])[]
  readonly home?: string
  readonly env?: Readonly<Record<string, string>>
}

/** The parts of a draft that tests look at. */
export interface Draft {
  readonly draft: boolean
  readonly extends: string
  readonly widens?: boolean
  readonly filesystem: {
    readonly read?: readonly { readonly path: string; readonly reason: string }[]
    readonly write?: readonly { readonly path: string }[]
  }
  readonly network?: { readonly mode: string; readonly allow: readonly { readonly host: string }[] }
  readonly exec?: string
  readonly environment?: {
    readonly pass?: readonly string[]
    readonly set?: Readonly<Record<string, string>>
  }
  readonly limits: Readonly<Record<string, number>>
}

/** For drafts whose verification is not looked at: it takes longer than the rest. */
export const verifiedBriefly: Pick<Asked, 'controls'> = { controls: ['user-mapping'] }

/** For drafts that widen only what is shown and set: by the controls of files, network and variables. */
export const verifiedWhereGranted = {
  controls: ['environment', 'mount-plan', 'net-namespace', 'read-only', 'variables'],
} as const satisfies Pick<Asked, 'controls'>

/** The controls by whose probes a draft was tried, or why it was not. */
export const triedBy = (verification: Verification | string): string | readonly string[] =>
  typeof verification === 'string'
    ? verification
    : [...new Set(verification.probes.map(({ control }) => control))].toSorted()

const script = fileURLToPath(new URL('run-learn.ts', import.meta.url))
const servers = fileURLToPath(new URL('../fixtures/servers', import.meta.url))

/** Learns the profile of a server, under this Node where no other command is said. */
export const learn = async (asked: Asked): Promise<Learned & { readonly draft: Draft }> => {
  const { stdout } = await promisify(execFile)(process.execPath, [script, JSON.stringify(asked)], {
    maxBuffer: 1 << 24,
  })
  return learnedIn(stdout)
}

export const learnedIn = (stdout: string): Learned & { readonly draft: Draft } => {
  const learned = JSON.parse(stdout) as Learned
  return { ...learned, draft: parse(learned.text) as Draft }
}

/** Paths that a draft grants to read beyond the runtime. */
export const readsOf = ({ filesystem }: Draft): readonly string[] =>
  (filesystem.read ?? []).map(({ path }) => path).filter((path) => path !== '/usr')

/** A folder with a fixture server as a package of its own, and a folder of documents, which everybody may read. */
export const openPackage = async (fixture: string) => {
  const dir = await tempDir()
  const [app, documents, data] = ['app', 'documents', 'data'].map((name) => join(dir.path, name)) as [
    string,
    string,
    string,
  ]
  for (const folder of [app, documents, data]) await mkdir(folder)
  await writeFile(join(app, 'package.json'), '{"type":"module"}')
  await writeFile(join(app, 'optional.txt'), 'it goes without')
  await writeFile(join(documents, 'letter.txt'), 'two doors')
  for (const file of [fixture, 'mcp.mjs']) await copyFile(join(servers, file), join(app, file))
  for (const folder of [dir.path, app, documents]) await chmod(folder, 0o755)
  await chmod(data, 0o777)
  return {
    path: dir.path,
    server: join(app, fixture),
    app,
    documents,
    data,
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  }
}
