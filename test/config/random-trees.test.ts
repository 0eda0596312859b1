// Configurations and profiles of any shape, as files: settings, or one refusal that says where; nothing else.
import { writeFile } from 'node:fs/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load.ts'
import { loadProfile } from '../../src/config/profile.ts'
import { SallyportError } from '../../src/errors.ts'
import { schemaOf } from '../../src/schema/validate.ts'
import { tempDir } from '../support/temp-dir.ts'

let folder: Awaited<ReturnType<typeof tempDir>>
beforeAll(async () => {
  folder = await tempDir()
})
afterAll(() => folder[Symbol.asyncDispose]())
const uid = process.getuid?.() ?? 0

/** Every name that a schema has for a member, at any depth. */
function namesIn(schema: unknown): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const own = 'properties' in schema ? Object.keys(Object(schema.properties) as object) : []
  return [...own, ...Object.values(schema).flatMap(namesIn)]
}

const trees = (kind: 'config' | 'profile'): fc.Arbitrary<unknown> => {
  const names = [...new Set(namesIn(schemaOf(kind))), 's', '__proto__', 'constructor', 'toString', '']
  const leaf = fc.oneof(
    fc.constantFrom<unknown>(
      1,
      0,
      -1,
      1e300,
      null,
      true,
      'allow',
      'deny',
      '*',
      '/',
      '~',
      '${A}',
      '${A:-b}',
      'offline',
    ),
    fc.string({ unit: 'binary', maxLength: 8 }),
    fc.double({ noNaN: true }),
  )
  return fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5, depthSize: 'large' },
      leaf,
      fc.dictionary(fc.constantFrom(...names), tie('tree'), { maxKeys: 5 }),
      fc.array(tie('tree'), { maxLength: 3 }),
    ),
  })).tree
}

/** The text of a file that its first members carry to where the rest is read. */
const text = (begin: object, tree: unknown): string => {
  const rest = typeof tree === 'object' && tree !== null && !Array.isArray(tree) ? tree : { extends: tree }
  return JSON.stringify({ ...rest, ...begin })
}

async function expectSettled(path: string, act: () => Promise<unknown>): Promise<void> {
  try {
    await act()
  } catch (error) {
    expect(error).toBeInstanceOf(SallyportError)
    const { code, message } = error as SallyportError
    expect(code).not.toBe('ERR_INTERNAL')
    expect(message.startsWith(path) && !/[\n\0]/.test(message), message).toBe(true)
  }
}

test('a configuration of any shape is settings or a refusal', async () => {
  const path = `${folder.path}/sallyport.yaml`
  const options = { path, env: { A: 'b' }, home: folder.path, uid, enterprise: `${folder.path}/none` }
  await fc.assert(
    fc.asyncProperty(trees('config'), trees('config'), async (tree, server) => {
      const begin = { version: 1, servers: { s: Object.assign({ command: 'node' }, Object(server)) } }
      await writeFile(path, text(begin, tree), { mode: 0o600 })
      await expectSettled(path, () => loadSettings(options))
    }),
    { numRuns: 150 },
  )
})

test('a profile of any shape is one or a refusal', async () => {
  const path = `${folder.path}/p.yaml`
  await fc.assert(
    fc.asyncProperty(trees('profile'), async (tree) => {
      await writeFile(path, text({ name: 'p', description: 'd' }, tree), { mode: 0o600 })
      await expectSettled(path, () => loadProfile(path, { folders: [], owners: [uid] }))
    }),
    { numRuns: 150 },
  )
})
