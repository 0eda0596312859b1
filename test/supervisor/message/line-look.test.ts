// A long line is looked through as it comes, with what one look at all of it would find, and no turn has more of it than a piece.
import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRedactor } from '../../../src/credentials/redactor.ts'
import { KnownValues } from '../../../src/credentials/values.ts'
import { lookBytes, LineLook } from '../../../src/supervisor/message/line-look.ts'
import { ServerLines } from '../../../src/supervisor/message/server-lines.ts'
import { serverSettings } from '../../support/server-settings.ts'

const secret = 'other-9876543210-token-zyxwvutsrq'
const values = new KnownValues()
values.add('key', Buffer.from(secret))
const redactor = createRedactor(values.scanner)

const filler = fc.integer({ min: 0, max: 2 * lookBytes }).map((length) => 'filler and é '.repeat(length / 13))
const written = fc.constantFrom(
  secret,
  Buffer.from(secret).toString('base64'),
  encodeURIComponent(secret),
  'none',
)

test('finds, whatever the pieces in which a line comes, what one look at it finds', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(filler, written), { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: lookBytes }), { minLength: 1, maxLength: 20 }),
      (parts, steps) => {
        const line = Buffer.from(parts.flat().join(''))
        const look = new LineLook(redactor)
        for (let at = 0, n = 0; at < line.length; n++) {
          at += steps[n % steps.length] as number
          look.begun(line.subarray(0, Math.min(at, line.length)))
        }
        const looked = look.ended(line)
        const { text, found } = redactor.redact(line.toString())
        if (line.length < lookBytes) expect(looked).toBeNull()
        else expect(looked).toEqual({ found, text: found.length > 0 ? text : '' })
      },
    ),
    { numRuns: 40 },
  )
})

test('forgets a line that nobody reads to its end', () => {
  const look = new LineLook(redactor)
  look.begun(Buffer.from(secret.padEnd(lookBytes)))
  look.dropped()
  expect(look.ended(Buffer.from('{}'))).toBeNull()
  const clean = Buffer.alloc(lookBytes, 'x')
  look.begun(clean)
  expect(look.ended(clean)).toEqual({ text: '', found: [] })
})

/** Feeds a server's output, in one chunk, to whoever reads it as lines, and counts what is looked through in each turn. */
async function mostInOneTurn(said: string, lines: number): Promise<number> {
  const stdout = new PassThrough()
  let [inTurn, most] = [0, 0]
  const heard: string[] = []
  const counting = {
    ...redactor,
    stream: () => {
      const stream = redactor.stream()
      return {
        ...stream,
        push(chunk: Uint8Array) {
          most = Math.max(most, (inTurn += chunk.length))
          return stream.push(chunk)
        },
      }
    },
  }
  const server = serverSettings('raw-script.mjs')
  const reader = new ServerLines(
    server,
    { stdout, redactor: counting },
    { line: (_bytes, text) => void heard.push(text), tooLong: () => undefined, tooLongEnd: () => undefined },
  )
  stdout.on('data', (chunk: Buffer) => reader.push(chunk))
  stdout.write(said)
  while (heard.length < lines) {
    inTurn = 0
    await turn()
  }
  return most
}

test('no turn looks at more of it than a piece or two, however much is there at once', async () => {
  const line = `${'x'.repeat(4_194_304)}\n`
  const most = await mostInOneTurn(line + line, 2)
  expect(most).toBeGreaterThan(0)
  expect(most).toBeLessThanOrEqual(2 * lookBytes)
})
