// What the log has of a bug that ended a session: where it showed, and no word of a person's in what it says.
import { expect, test } from 'vitest'
import { SallyportError } from '../../src/errors.ts'
import { tellBug } from '../../src/daemon/bug-log.ts'

const word = 'tulip-4711'
const confided = {
  of: () => ({
    redact: (text: string) => ({ text: text.replaceAll(word, '[told]'), hits: text.includes(word) ? 1 : 0 }),
  }),
} as never

function logged(cause: unknown): readonly [Record<string, unknown>, string] {
  const lines: [Record<string, unknown>, string][] = []
  const log = { error: (fields: Record<string, unknown>, words: string) => void lines.push([fields, words]) }
  const event = {
    type: 'session/failed',
    server: 'a',
    instance: null,
    principal: '1000',
    detail: { session: 's-1' },
  }
  tellBug(log, event, new SallyportError('ERR_INTERNAL', 'a bug', {}, { cause }), confided)
  expect(lines).toHaveLength(1)
  return lines[0] ?? [{}, '']
}

test('says what was thrown and where, and takes out what a person told', () => {
  const [fields, words] = logged(new TypeError(`no ${word}\n    at ${word} here`))
  expect(words).toBe('session/failed')
  expect(fields).toMatchObject({
    server: 'a',
    session: 's-1',
    said: expect.stringContaining('TypeError: no [told]'),
  })
  expect(fields['stack']).toMatch(/^at .*bug-log\.test\.ts/)
  expect(JSON.stringify(fields)).not.toContain(word)
})

test('what is thrown and is no error has no stack', () => {
  expect(logged(word)[0]).toMatchObject({ said: '[told]', stack: '' })
})
