// What decides about calls is the same wherever it is stated: an approval outlives an update of ours, and a file that is moved.
import { expect, test } from 'vitest'
import { policyVersionOf } from '../../../src/daemon/governance/policy.ts'
import type { ProfileSettings, Rule, Settings } from '../../../src/schema/settings.ts'
import { serverOf } from '../../support/settings.ts'

const rule: Rule = { permission: 'mcp:*:*', action: 'ask', where: {}, origin: 'sallyport.yaml rules[0]' }

/** The policy of a server whose profile, entry and rule stand in these files. */
function under(folder: string, name: string, set: object = {}, more: Partial<Rule> = {}): string {
  const server = serverOf({ file: `${folder}/${name}` })
  const file = `${folder}/profiles/node.yaml`
  const profile = {
    name: server.profile,
    path: file,
    environment: { pass: [], set, override: {} },
    assertions: [{ file, line: 1 }],
  } as unknown as ProfileSettings
  const settings = {
    servers: new Map([[server.name, server]]),
    profiles: new Map([[server.profile, profile]]),
    allowedCommands: [],
    commandPath: [],
    interpreterOptions: {},
    credentials: {},
    rules: [{ ...rule, origin: `${name} rules[0]`, ...more }],
  } as unknown as Settings
  return policyVersionOf(settings, server.name)
}

test('files and folders are none of it', () => {
  expect(under('/new', 'other.yaml')).toBe(under('/old', 'sallyport.yaml'))
})

test('what they grant, and rule, is', () => {
  const before = under('/old', 'sallyport.yaml')
  expect(under('/old', 'sallyport.yaml', { file: 'a' })).not.toBe(before)
  expect(under('/old', 'sallyport.yaml', { file: 'b' })).not.toBe(
    under('/old', 'sallyport.yaml', { file: 'a' }),
  )
  expect(under('/old', 'sallyport.yaml', {}, { action: 'deny' })).not.toBe(before)
})
