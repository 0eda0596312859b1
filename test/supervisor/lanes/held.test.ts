// What a call in flight keeps of its request: its lineage, and not the line that said so.
import { expect, test } from 'vitest'
import { readUnambiguous } from '../../../src/supervisor/message/envelope.ts'
import { asksOf, heldAgain } from '../../../src/supervisor/lanes/held.ts'
import { living } from '../../support/collect.ts'

const id = { raw: '1', key: 'n1' }
const request = {
  id,
  wireId: id,
  method: 'tools/call',
  route: 'call',
  line: null,
  declares: null,
  round: 0,
} as const

test('of a request that was sent its lineage is kept, and not the line that it stood in', () => {
  const lineages: unknown[] = []
  const before = living()
  for (let n = 0; n < 20; n++) {
    const long = 'x'.repeat(200_000)
    const params = `{"_meta":{"sallyport/lineage":"the lineage of ${n}"},"name":"echo","arguments":{"long":"${long}"}}`
    lineages.push(
      heldAgain(request, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}\n`)?.lineage,
    )
  }
  expect(living() - before).toBeLessThan(1024 * 1024)
  expect(lineages[19]).toBe('the lineage of 19')
})

test.each([
  ['{"name":"t"}', {}],
  ['{"name":"t","arguments":{"a":1}}', { a: 1 }],
  ['{"name":"t","arguments":null}', null],
  ['{"name":"t","arguments":[]}', []],
])('the arguments of %s are judged as they are sent', (params, expected) => {
  const line = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
  const envelope = readUnambiguous(line, 0, line.length)
  if (envelope.kind !== 'request') throw new Error('that is no request')
  expect(asksOf(envelope, 'call')[0]?.arguments).toEqual(expected)
})
