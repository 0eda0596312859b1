// A server finds exactly the variables that were meant for it, in its own environment and in everybody else's.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bare, confined, daemons } from '../support/escape.ts'

interface Reach {
  readonly environment: string[]
  readonly environmentHolds: string[]
  readonly leaked: string[]
}

const canary = 'canary-of-the-daemon-0451'
const wanted = JSON.stringify({ words: [canary, '/tmp/sp-'] })

beforeAll(() => {
  process.env['AWS_SECRET_ACCESS_KEY'] = canary
  process.env['SALLYPORT_TEST_CANARY'] = canary
})

afterAll(() => {
  delete process.env['AWS_SECRET_ACCESS_KEY']
  delete process.env['SALLYPORT_TEST_CANARY']
})

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server has the base, what its entry sets, and nothing else', async () => {
    const more = { env: { LOG_LEVEL: 'info' } }
    const found = JSON.parse(await confined(daemon, 'probe-reach.mjs', [wanted], more)) as Reach
    expect(found.environment).toEqual(['HOME', 'LANG', 'LOG_LEVEL', 'PATH', 'TERM', 'TMPDIR', 'USER'])
    expect(found.environmentHolds).toEqual([])
  })

  test('no process that a server can look at has the daemon’s environment or paths in its own', async () => {
    const found = JSON.parse(await confined(daemon, 'probe-reach.mjs', [wanted])) as Reach
    expect(found.leaked).toEqual([])
  })
})

test('bare, the daemon’s variables are inherited', async () => {
  const found = JSON.parse(await bare('probe-reach.mjs', [wanted])) as Reach
  expect(found.environmentHolds).toEqual([canary])
})
