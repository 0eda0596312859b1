// Lists are asked for page by page, up to so many pages and so much text: a server that talks on is not listened to.
import { expect, test } from 'vitest'
import { RawJson } from '../../../src/lib/raw-json.ts'
import { readSurface } from '../../../src/supervisor/client/surface.ts'

/** A server whose `prompts` never end, in pages of that many characters. */
function endless(characters: number) {
  let asked = 0
  const request = async (method: string) => {
    asked += 1
    const prompts = [{ name: `p${asked}`, description: 'x'.repeat(characters) }]
    const page = { prompts, nextCursor: `c${asked}` }
    return {
      kind: 'result' as const,
      result: new RawJson(JSON.stringify(method === 'prompts/list' ? page : {})),
    }
  }
  const introduction = { capabilities: { prompts: {} }, instructions: null }
  const read = readSurface(request, introduction, 1000)
  return { asked: () => asked, read }
}

test('a list that does not end is a hundred pages', async () => {
  const server = endless(10)
  expect((await server.read).rest).toMatchObject({ prompts: { length: 100 } })
  expect(server.asked()).toBe(100)
})

test('a list that is too long is none, and what it was asked for is not known', async () => {
  const server = endless(3_000_000)
  await expect(server.read).rejects.toMatchObject({ code: 'ERR_RESULT_TOO_LARGE' })
  expect(server.asked()).toBe(3)
})
