// The version that a server says it is itself, while its code stays what it is: another one is another server until it is accepted.
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { attached } from '../support/attached.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import type { TestDaemon } from '../support/daemon.ts'
import { RawCaller } from '../support/raw-caller.ts'
import { bodiesOf, type Witness, witness } from '../support/witness.ts'

const changed = 'ERR_IDENTITY_CHANGED'
const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** The code by which a call is refused, or null. */
type Door = (at: TestDaemon, server: string) => Promise<string | null>

const byControl: Door = async ({ client }, server) => {
  const call = client.call('tools/call', { server, tool: 'echo', arguments: {} })
  return call.then(
    () => null,
    ({ code }: { code: string }) => code,
  )
}
const codeOf = ({ error }: { error?: { data?: unknown } }): string | null =>
  error === undefined ? null : (error.data as { code: string }).code
const inSession: Door = async (at, server) => {
  await using host = await attached(at, server)
  return codeOf(await host.call('echo'))
}
const inLaterSession: Door = async (at, server) => {
  using host = await RawCaller.open(join(at.runtimeDir, 'host/host.sock'))
  await host.ask('session/attach', { server })
  return codeOf(await host.ask('tools/call', { name: 'echo', arguments: {}, _meta }))
}

/** What a server's entry has that says this version, and from then on what it is told to. */
function saying({ source, mount }: Witness, first: string) {
  const says = (version: string): void => writeFileSync(join(source, 'version'), version)
  says(first)
  const args = ['/app/says-version.mjs', '/seen/version']
  return { says, entry: { profile: 'workspace-write', mounts: [mount], args } }
}

describe.each([
  ['a control call', 'session', byControl],
  ['a session', 'session', inSession],
  ['a session of the later era', 'session', inLaterSession],
  ['a control call to a process of its own', 'call', byControl],
  ['a session with a process for each call', 'call', inSession],
  ['a session with a process that others share', 'shared', inLaterSession],
] as const)('by %s', (_, instance, door) => {
  test('a later and an earlier one are refused until they are accepted', async () => {
    await using seen = await witness()
    const { says, entry } = saying(seen, '2.0.0')
    await using at = await daemon(configOf({ same: fixture('says-version', { ...entry, instance }) }))
    const again = async (version: string): Promise<void> => {
      says(version)
      await at.client.call('servers/stop', { server: 'same' })
    }
    expect(await door(at, 'same')).toBeNull()
    for (const version of ['2.0.1', '1.9.9']) {
      await again(version)
      expect(await door(at, 'same')).toBe(changed)
      await again('2.0.0')
      expect(await door(at, 'same')).toBeNull()
    }
    await again('1.9.9')
    await at.client.call('declarations/accept', { server: 'same' })
    expect(await door(at, 'same')).toBeNull()
    await again('2.0.0')
    expect(await door(at, 'same')).toBe(changed)
    expect(bodiesOf(at.stateDir, 'surface.accepted')).toMatchObject([
      { saidVersion: '2.0.0', declarationVersion: 1 },
      { saidVersion: '1.9.9', declarationVersion: 2 },
    ])
  })
})

test('a declaration holds its server to the version that was drafted, by an operator’s yes and at first sight', async () => {
  await using seen = await witness()
  const { says, entry } = saying(seen, '2.0.0')
  const manual = { ...entry, acceptance: 'manual' }
  await using at = await daemon(configOf({ same: fixture('says-version', manual) }))
  const { declaration, said_version: said } = await at.client.call('servers/declare', { server: 'same' })
  expect([said, declaration.said_version]).toEqual(['2.0.0', '2.0.0'])
  const accept = () =>
    at.client.call('declarations/accept', { server: 'same', declaration: { ...declaration } })
  says('6.6.6')
  await expect(accept()).rejects.toMatchObject({
    code: 'ERR_DECLARATION_MISMATCH',
    message: expect.stringMatching(/version "2\.0\.0", and same says "6\.6\.6"/),
  })
  const file = join(at.folder, 'same.json')
  writeFileSync(file, JSON.stringify(declaration), { mode: 0o600 })
  writeFileSync(
    at.config,
    JSON.stringify(configOf({ same: fixture('says-version', { ...entry, declaration: file }) })),
  )
  await at.client.call('daemon/reload', {})
  expect(await byControl(at, 'same')).toBe('ERR_DECLARATION_MISSING')
  expect(bodiesOf(at.stateDir, 'surface.accepted')).toEqual([])
  says('2.0.0')
  await at.client.call('servers/stop', { server: 'same' })
  expect(await byControl(at, 'same')).toBeNull()
})
