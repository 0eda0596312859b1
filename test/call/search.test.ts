// The search over tools: what is for the purpose comes first, and nothing that shares no word comes at all.
import { expect, test } from 'vitest'
import { search, type Searchable } from '../../src/call/search.ts'

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

const found = (query: string, limit = 10): readonly string[] =>
  search(tools, query, limit).map(({ tool: name }) => name)

test('a tool is found by its name, however its words are joined', () => {
  expect(found('write file')[0]).toBe('writeFile')
  expect(found('readFile')[0]).toBe('read_file')
})

test('a word in the name counts more than one in the description', () => {
  expect(found('file').slice(0, 2).toSorted()).toEqual(['read_file', 'writeFile'])
})

test('parameters and servers are searched too, and plurals do not matter', () => {
  expect(found('repositories')).toEqual([])
  expect(found('repository').toSorted()).toEqual(['create_issue', 'search_code'])
  expect(found('issues')).toEqual(['create_issue'])
  expect(found('github').toSorted()).toEqual(['create_issue', 'search_code'])
})

test('what shares no word is not found, and an empty question finds nothing', () => {
  expect(found('weather')).toEqual([])
  expect(found(' ?! ')).toEqual([])
  expect(search([], 'file', 10)).toEqual([])
})

test('no more than the limit is found', () => {
  expect(found('file', 1)).toHaveLength(1)
})

test('a hostile schema or description costs little and breaks nothing', () => {
  const long = 'file '.repeat(100_000)
  const odd = [tool('x', long), tool('y', '', { inputSchema: { properties: [null, 1] } }), ...tools]
  const before = process.cpuUsage()
  expect(search(odd, 'file', 10).length).toBeGreaterThan(2)
  // Not by the clock, which others on the machine have a part in
  expect(process.cpuUsage(before).user / 1e6).toBeLessThan(2)
})

test('a tool that is searched again is not read again, and one that says something else is', () => {
  let reads = 0
  const inputSchema = {
    get properties() {
      reads += 1
      return { recipient: {} }
    },
  }
  const post = tool('post', 'Posts a letter.', { inputSchema })
  const find = (one: Searchable, query: string): number => search([one], query, 10).length
  expect([find(post, 'recipient'), find({ ...post }, 'letter'), find({ ...post }, 'recipient')]).toEqual([
    1, 1, 1,
  ])
  expect(reads).toBe(1)
  expect([find({ ...post, description: 'Sends a parcel.' }, 'parcel'), find(post, 'parcel')]).toEqual([1, 0])
})
