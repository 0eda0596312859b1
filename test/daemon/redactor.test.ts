// Events and logs without the values of leases.
import { expect, test } from 'vitest'
import { createBroker } from '../../src/credentials/broker.ts'
import { concealed, concealing, redactor, redactorWith } from '../../src/daemon/redactor.ts'
import type { InstanceId } from '../../src/lib/ids.ts'
import { silent } from '../../src/lib/logger.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { patienceMs } from '../support/patience.ts'

const value = 'the-value-of-a-secret-0123456789'
const injection = {
  use: 'key',
  inject: 'meta',
  as: 'KEY',
  hosts: [],
  headers: [],
  query: false,
  body: false,
  websocket: false,
  placeholder: { prefix: '', length: 40 },
} as const

const credentials = { key: { kind: 'env', variable: 'KEY' } } as const

/** A broker with an open lease of the value. */
async function leased(secret = value) {
  const broker = createBroker({
    sources: credentials,
    environment: { KEY: secret },
    uid: process.geteuid?.() ?? -1,
    initPath: await findInitBinary(),
  })
  const secrets = broker.forSandbox({
    server: 'x',
    instance: 'i-1' as InstanceId,
    injections: [injection],
    violated: () => undefined,
  })
  const request = {
    permit: 'p',
    call: 'c',
    names: ['key'],
    deadlineMs: 10_000,
    attribution: 'window',
  } as const
  const lease = await secrets.lease(request, { signal: AbortSignal.timeout(patienceMs) })
  return {
    broker,
    [Symbol.dispose]() {
      lease[Symbol.dispose]()
      secrets[Symbol.dispose]()
    },
  }
}

test('hold no value of a lease, in whatever form and depth, and are else as they were', async () => {
  using at = await leased()
  const { broker } = at
  const detail = { reason: `it said ${value}`, deep: { base64: Buffer.from(value).toString('base64') }, n: 1 }
  const event = { type: 't', server: 'x', instance: null, principal: null, detail }
  const clean = concealed(event, broker, { credentials })
  expect(JSON.stringify(clean)).not.toMatch(/the-value|dGhlLXZhbH/)
  expect(clean.detail['n']).toBe(1)

  const lines: unknown[] = []
  const log = concealing({ ...silent, warn: (fields) => lines.push(fields) }, broker, { credentials })
  log.warn({ err: new Error(value), ino: 7n, reason: value }, 'failed')
  log.warn({ ino: 7n }, 'plain')
  expect(JSON.stringify(lines[0])).not.toContain('the-value')
  expect(lines[1]).toEqual({ ino: 7n })
})

test('a long text is looked through in turns of the event loop, and a value is found wherever one ends', async () => {
  using at = await leased()
  const redactor = redactorWith(at.broker)
  const text = JSON.stringify(Array.from({ length: 1000 }, (_, n) => 'x'.repeat(n % 40) + value).join('é '))
  let [turns, isOver] = [0, false]
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  count()
  const kept = await redactor.redactLong(text.repeat(5))
  isOver = true
  expect(turns).toBeGreaterThan(8)
  expect(kept.text).toBe(text.replaceAll(value, '[redacted:key]').repeat(5))
  expect(kept.hits).toBe(1)
})

test('what JSON makes look like a value leaves a JSON text, in events and records', async () => {
  using at = await leased('npm_0123456789abcdefghij')
  const { broker } = at
  const detail = { reason: 'a line\npm_0123456789abcdefghij', also: 'npm_0123456789abcdefghij', n: 1 }
  const event = { type: 't', server: 'x', instance: null, principal: null, detail }
  const kept = { ...detail, also: '[redacted:key]' }
  expect(concealed(event, broker, { credentials }).detail).toEqual(kept)
  expect(JSON.parse(redactorWith(broker).redact(JSON.stringify(detail)).text)).toEqual(kept)
  const long = 'x'.repeat(300_000)
  const { text } = await redactorWith(broker).redactLong(JSON.stringify({ ...detail, long }))
  expect(JSON.parse(text)).toEqual({ ...kept, long })
  using digits = await leased('481516234200')
  expect(JSON.parse(redactorWith(digits.broker).redact('{"n":481516234200}').text)).toEqual({
    n: '[redacted:key]',
  })
})

test('a value is found in what is kept as it is, unless it is short, or the name of an operator’s server has it', async () => {
  const cases = [
    [value, [], 'the value of the credential key'],
    ['postgres', ['postgres'], null],
    ['0085', [], null],
  ] as const
  for (const [secret, names, found] of cases) {
    using at = await leased(secret)
    const keeper = redactorWith(at.broker, () => names)
    expect(keeper.secretIn({ source: `/opt/${secret}` })).toBe(found)
    expect(keeper.secretIn([`/opt/${secret}`])).toBe(found)
    expect(keeper.secretIn({ source: '/opt/other' })).toBe(null)
    expect(keeper.secretIn({ a: [`ghp_${'a1B2'.repeat(9)}`] })).toBe('what looks like a GitHub token')
  }
})

test('what kind of secret a text seems to hold is not for the text to say', () => {
  const said = {
    description: 'lines like [redacted: an npm token] are normal',
    env: `ghp_${'a1B2'.repeat(9)}`,
  }
  expect(redactor.shapeIn(said)).toBe('what looks like a GitHub token')
  expect(redactor.shapeIn({ description: said.description })).toBe(null)
})
