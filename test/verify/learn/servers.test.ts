// Three published servers: each is learned from a drive, passes the same drive under its draft, and the draft verifies: one by all
// of the battery, the others by what their grants can widen.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { catalogue } from '../../../src/verify/catalogue.ts'
import {
  type Asked,
  learn,
  openPackage,
  readsOf,
  triedBy,
  verifiedWhereGranted,
} from '../../support/learning.ts'
import { green } from '../../support/verification.ts'

const packages = fileURLToPath(new URL('../../../node_modules', import.meta.url))
const scope = join(packages, '@modelcontextprotocol')

/** What every one of them is made of; the rest differs. */
const common = ['ajv', 'ajv-formats', 'zod'].map((name) => join(packages, name))

const everyControl = [...new Set(catalogue.map(({ control }) => control))].toSorted()

interface Case {
  readonly server: string
  readonly asked: (folders: { documents: string; data: string }) => Asked
  /** Grants beyond the code */
  readonly beyond: (folders: { documents: string; data: string }) => readonly string[]
}

const cases: readonly Case[] = [
  {
    server: 'server-filesystem',
    asked: ({ documents }) => ({
      args: [documents],
      calls: [
        ['list_directory', { path: documents }],
        ['read_text_file', { path: join(documents, 'letter.txt') }],
      ],
    }),
    beyond: ({ documents }) => [`reading ${documents}`],
  },
  {
    server: 'server-memory',
    asked: ({ data }) => ({
      ...verifiedWhereGranted,
      write: [data],
      set: { MEMORY_FILE_PATH: join(data, 'memory.jsonl') },
      calls: [
        ['create_entities', { entities: [{ name: 'door', entityType: 'thing', observations: ['two'] }] }],
        ['read_graph', {}],
      ],
    }),
    beyond: ({ data }) => [`writing ${data}`, 'the variable MEMORY_FILE_PATH'],
  },
  {
    server: 'server-everything',
    asked: () => ({
      ...verifiedWhereGranted,
      args: ['stdio'],
      calls: [
        ['echo', { message: 'two doors' }],
        ['get-sum', { a: 1, b: 2 }],
      ],
    }),
    beyond: () => [],
  },
]

test('a server in Python is learned as one in Node is: its files, its notes, the variable that says where', async () => {
  await using at = await openPackage('notes.py')
  // Python lists the folder of its script, which is no reason to show what else is there.
  const script = join(at.app, 'serve.py')
  await writeFile(script, 'import notes\n', { mode: 0o644 })
  await writeFile(join(at.app, 'diary.txt'), 'of nobody else', { mode: 0o644 })
  const { draft, proof, verification } = await learn({
    ...verifiedWhereGranted,
    command: '/usr/bin/python3',
    args: [script],
    read: [at.documents],
    set: { NOTES: at.documents },
    calls: [['read', { name: 'letter.txt' }]],
  })
  expect(proof).toMatchObject({ holds: true, failed: [], differences: [], requests: 2, same: 2 })
  expect(readsOf(draft).toSorted()).toEqual([script, at.server, at.documents].toSorted())
  expect(proof.dropped).toContain(`reading the rest of ${at.app}`)
  expect(proof.needed).toContain(`reading ${at.server}`)
  expect(draft).toMatchObject({
    extends: 'offline',
    exec: 'none',
    environment: { set: { NOTES: at.documents } },
  })
  expect(verification).toMatchObject({ verdict: green })
  expect(triedBy(verification)).toEqual(verifiedWhereGranted.controls)
})

test.each(cases)(
  '$server passes its drive under the draft that was learned from it, which verifies',
  async ({ server, asked, beyond }) => {
    await using at = await openPackage('echo.mjs')
    const folders = { documents: at.documents, data: at.data }
    await mkdir(join(at.data, 'kept'))
    await writeFile(join(at.data, 'kept', 'note.txt'), 'x')
    const more = asked(folders)
    const own = join(scope, server)
    const { draft, proof, verification } = await learn({
      ...more,
      args: [join(own, 'dist/index.js'), ...(more.args ?? [])],
    })
    expect(proof).toMatchObject({ holds: true, failed: [], differences: [], requests: 3, same: 3 })
    expect(proof.needed).toEqual(expect.arrayContaining([`reading ${own}`, ...beyond(folders)]))
    expect(readsOf(draft)).toEqual(expect.arrayContaining([own, join(scope, 'sdk'), ...common]))
    // Packages, each by itself, and nothing of what lies beside them.
    const code = readsOf(draft).filter((path) => path !== at.documents)
    expect(code.every((path) => /\/node_modules\/(@[^/]+\/)?[^/]+$/.test(path))).toBe(true)
    expect(draft).toMatchObject({ draft: true, extends: 'offline', exec: 'none' })
    expect(draft.network).toBe(undefined)
    expect(verification).toMatchObject({ verdict: green })
    expect(triedBy(verification)).toEqual(more.controls ?? everyControl)
  },
)
