import { expect, test } from 'vitest'
import { tellBurst, tellPerSecond, toldApart } from '../../src/egress/limits.ts'
import type { DoorVerdict } from '../../src/schema/egress.ts'
import { echo, testDoor, upstream } from '../support/egress-door.ts'
import type { TestDoor } from '../support/egress-door.ts'
import { hostileHosts, hostilePorts, shown } from '../support/hostile-hosts.ts'
import type { HostileHost } from '../support/hostile-hosts.ts'

// Whatever is judged to be listed comes to the watch, which says so; nothing is dialled, and nothing else looked up.
const listed: DoorVerdict = { open: false, reason: 'listed' }
const open = (): Promise<TestDoor> =>
  testDoor({
    grants: [443, 80].flatMap((port) =>
      ['allowed.com', '*.allowed.com'].map((host) => ({ host, port, tls: port === 443 })),
    ),
    names: {},
    mayConnect: () => listed,
  })

const rows = hostileHosts.map((row) => ({ ...row, title: shown(row.text) }))
const refusals = {
  invalid: ['bad-opening', 'bad-request', 'name-invalid', 'head-too-large'],
  unlisted: ['name-not-listed', 'bad-opening', 'bad-request', 'name-invalid'],
  listed: ['listed'],
}
const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text)
/** Beyond ASCII a name is no name on any wire. */
const expected = ({ outcome, text }: HostileHost): readonly string[] =>
  refusals[isAscii(text) ? outcome : 'invalid']
const isShort = ({ text }: HostileHost): boolean => text.length < 1000

test.each(rows)('group $group: $title as the name on the door’s line', async (row) => {
  await using it = await open()
  const { answer, reason } = await it.refuses(`SP1 connect ${row.text} 443\n`)
  expect(expected(row)).toContain(reason)
  expect(answer).toBe('')
})

test.each(rows)('group $group: $title as the authority of CONNECT', async (row) => {
  await using it = await open()
  const { answer, reason } = await it.refuses(`SP1 proxy\nCONNECT ${row.text}:443 HTTP/1.1\r\n\r\n`)
  expect(expected(row)).toContain(reason)
  expect(answer).toMatch(
    reason === 'listed' || reason === 'name-not-listed' ? /^HTTP\/1.1 403 / : /^HTTP\/1.1 4[03][01] /,
  )
  if (row.text.length > 5) expect(answer).not.toContain(row.text)
})

test.each(rows)('group $group: $title in an absolute URL', async (row) => {
  await using it = await open()
  const { answer, reason } = await it.refuses(
    `SP1 proxy\nGET http://${row.text}/ HTTP/1.1\r\nHost: allowed.com\r\n\r\n`,
  )
  // A slash or a question mark ends the authority: there it is allowed.com, for every reader
  const isPath = /^allowed\.com[/?]/.test(row.text)
  expect(isPath ? ['listed'] : expected(row)).toContain(reason)
  expect(answer).toMatch(/^HTTP\/1.1 4/)
})

test.each(rows)('group $group: $title as Host of a request for allowed.com', async (row) => {
  await using server = await upstream(echo)
  await using it = await testDoor({
    grants: [{ port: server.port, tls: false }],
    names: { 'allowed.com': ['127.0.0.1'] },
  })
  const port = `:${server.port}`
  const request = `GET http://allowed.com${port}/ HTTP/1.1\r\nHost: ${row.text}${port}\r\n\r\n`
  // Blanks around a field's value are none of its content
  if (row.outcome === 'listed' || row.text === ' allowed.com') {
    it.says(`SP1 proxy\n${request}`)
    expect(await it.told('opened')).toMatchObject({ host: 'allowed.com' })
    return
  }
  const { answer, reason } = await it.refuses(`SP1 proxy\n${request}`)
  expect(['host-mismatch', 'bad-request', 'head-too-large']).toContain(reason)
  expect(answer).toMatch(/^HTTP\/1.1 4(00|21|31) /)
  expect(server.accepted()).toBe(0)
})

test.each(rows.filter(isShort))(
  'group $group: $title as a name with a port is one name, or none',
  async (row) => {
    await using it = await open()
    const { reason } = await it.refuses(`SP1 connect ${row.text}:443 443\n`)
    expect(['bad-opening', 'name-invalid']).toContain(reason)
  },
)

test.each(hostilePorts.map((port) => [shown(port), port]))('group 33: %s as a port', async (_title, port) => {
  await using it = await open()
  const bad = ['bad-opening', 'bad-request', 'name-invalid']
  expect(bad).toContain((await it.refuses(`SP1 connect allowed.com ${port}\n`)).reason)
  expect(bad).toContain((await it.refuses(`SP1 proxy\nCONNECT allowed.com:${port} HTTP/1.1\r\n\r\n`)).reason)
  const absolute = `SP1 proxy\nGET http://allowed.com:${port}/ HTTP/1.1\r\nHost: allowed.com\r\n\r\n`
  expect(bad).toContain((await it.refuses(absolute)).reason)
})

test('group 31: a name that only ends like a listed one, and a listed one at another port', async () => {
  await using it = await open()
  expect((await it.refuses('SP1 connect xallowed.com 443\n')).reason).toBe('name-not-listed')
  expect((await it.refuses('SP1 connect allowed.com 8443\n')).reason).toBe('port-not-listed')
  expect((await it.refuses('SP1 connect a.b.allowed.com 443\n')).reason).toBe('listed')
})

test('group 40: a door judges by its own policy, whatever came to it through whom', async () => {
  await using it = await open()
  await using other = await testDoor({ grants: [{ host: 'other.com' }], names: {}, mayConnect: () => listed })
  expect((await other.refuses('SP1 connect allowed.com 443\n')).reason).toBe('name-not-listed')
  expect((await it.refuses('SP1 connect other.com 443\n')).reason).toBe('name-not-listed')
  const smuggled =
    'SP1 proxy\nCONNECT allowed.com:443 HTTP/1.1\r\nProxy-Authorization: Basic b3RoZXI6b3RoZXI=\r\n\r\n'
  expect((await other.refuses(smuggled)).reason).toBe('name-not-listed')
})

test('group 41: two thousand names are refused one by one, and told by their number', async () => {
  await using it = await open()
  const total = 2000
  const lanes = Array.from({ length: 32 }, (_, lane) => lane)
  const began = performance.now()
  await Promise.all(
    lanes.map(async (lane) => {
      for (let i = lane; i < total; i += lanes.length) await it.answers(`SP1 connect n${i}.evil.net 443\n`)
    }),
  )
  await it.door[Symbol.asyncDispose]()
  expect(it.events.reduce((sum, { count }) => sum + count, 0)).toBe(total)
  // However long this machine took: the burst, and what each second lets through or counts apart
  const seconds = Math.ceil((performance.now() - began) / 1000)
  expect(it.events.length).toBeLessThanOrEqual(tellBurst + (seconds + 1) * (tellPerSecond + toldApart + 1))
})
