// The search over tools: what is for the purpose comes first, and nothing that shares no word comes at all.
import { expect, test } from 'vitest'
import { search, type Searchable } from '../../src/call/search.ts'
import { turns } from '../support/turns.ts'

const tool = (name: string, description: string, more: Partial<Searchable> = {}): Searchable => ({
  server: 'files',
  tool: name,
  description,
  inputSchema: { type: 'object' },
  ...more,
})

const tools = [
  tool('read_file', 'Reads the contents of one file.'),
  tool('writeFile', 'Writes a file, replacing what was there.'),
  tool('list_directory', 'Lists what a folder holds.'),
  tool('create_issue', 'Opens an issue in a repository.', { server: 'github' }),
  tool('search_code', 'Finds code.', {
    server: 'github',
    inputSchema: { type: 'object', properties: { repository: { description: 'Where to look' } } },
  }),
]

const found = async (query: string, limit = 10): Promise<readonly string[]> =>
  (await search(tools, query, limit)).map(({ tool: name }) => name)

test('a tool is found by its name, however its words are joined', async () => {
  expect((await found('write file'))[0]).toBe('writeFile')
  expect((await found('readFile'))[0]).toBe('read_file')
})

test('a word in the name counts more than one in the description', async () => {
  expect((await found('file')).slice(0, 2).toSorted()).toEqual(['read_file', 'writeFile'])
})

test('parameters and servers are searched too, and plurals do not matter', async () => {
  expect(await found('repositories')).toEqual([])
  expect((await found('repository')).toSorted()).toEqual(['create_issue', 'search_code'])
  expect(await found('issues')).toEqual(['create_issue'])
  expect((await found('github')).toSorted()).toEqual(['create_issue', 'search_code'])
})

test('what shares no word is not found, and an empty question finds nothing', async () => {
  expect(await found('weather')).toEqual([])
  expect(await found(' ?! ')).toEqual([])
  expect(await search([], 'file', 10)).toEqual([])
})

test('no more than the limit is found', async () => {
  expect(await found('file', 1)).toHaveLength(1)
})

test('a hostile schema or description costs little and breaks nothing', async () => {
  const long = 'file '.repeat(100_000)
  const odd = [tool('x', long), tool('y', '', { inputSchema: { properties: [null, 1] } }), ...tools]
  const before = process.cpuUsage()
  expect((await search(odd, 'file', 10)).length).toBeGreaterThan(2)
  // Not by the clock, which others on the machine have a part in
  expect(process.cpuUsage(before).user / 1e6).toBeLessThan(2)
})

test('a tool that is searched again is not read again, and one that says something else is', async () => {
  let reads = 0
  const inputSchema = {
    get properties() {
      reads += 1
      return { recipient: {} }
    },
  }
  const post = tool('post', 'Posts a letter.', { inputSchema })
  const find = async (one: Searchable, query: string) => (await search([one], query, 10)).length
  for (const query of ['recipient', 'letter', 'recipient']) expect(await find({ ...post }, query)).toBe(1)
  expect(reads).toBe(1)
  expect(await find({ ...post, description: 'Sends a parcel.' }, 'parcel')).toBe(1)
  expect(await find(post, 'parcel')).toBe(0)
})

test('others have their turns while many tools are searched that were not before', async () => {
  const many = Array.from({ length: 300 }, (_, n) => tool(`tool_${n}`, `word${n} `.repeat(2000)))
  const seen = turns()
  expect(await search(many, 'word7', 10)).toHaveLength(1)
  seen.stop()
  expect(seen.count()).toBeGreaterThan(2)
})
