// Profiles: found, folded, held to their parents; the shipped ones are what their README says.
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { keyRules } from '../../src/config/narrowing.ts'
import { findProfiles, profileSearch, type ProfileSearch } from '../../src/config/profile-layers.ts'
import { formatProfile, listProfiles, showProfile } from '../../src/config/profile-show.ts'
import { loadProfile } from '../../src/config/profile.ts'
import { goldenPath } from '../support/golden.ts'
import { linesOf, refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

const uid = process.getuid?.() ?? 0
const shippedOnly: ProfileSearch = { folders: [], owners: [uid] }
const shipped = (await findProfiles(shippedOnly)).map(({ name }) => name)

/** Writes profiles into a folder of their own and searches there. */
async function withProfiles(files: Readonly<Record<string, string>>) {
  const dir = await tempDir()
  for (const [name, text] of Object.entries(files))
    await writeFile(`${dir.path}/${name}.yaml`, text, { mode: 0o600 })
  const search: ProfileSearch = { folders: [dir.path], owners: [uid] }
  const said = async (name: string) =>
    linesOf(await refusal(() => loadProfile(name, search))).replaceAll(`${dir.path}/`, '')
  return { path: dir.path, search, said, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() }
}

const profile = (name: string, rest = ''): string => `version: 1\nname: ${name}\n${rest}`

describe('the shipped profiles', () => {
  test('are these seven', () => {
    expect(shipped).toEqual([
      'allowlisted-egress',
      'browser',
      'node',
      'offline',
      'python',
      'workspace-read',
      'workspace-write',
    ])
  })

  test.each(shipped)(
    '%s resolves to what its golden file says, with the line that decides each value',
    async (name) => {
      const resolved = await loadProfile(name, shippedOnly)
      await expect(formatProfile(showProfile(resolved))).toMatchFileSnapshot(goldenPath('profiles', name))
    },
  )

  test.each(shipped)('%s gives a reason for every grant and decides every value', async (name) => {
    const { filesystem, network, description, decidedAt } = await loadProfile(name, shippedOnly)
    const grants = [...filesystem.read, ...filesystem.write, ...network.allow]
    expect(grants.map(({ reason }) => reason.length)).not.toContain(0)
    expect(description).not.toBe('')
    expect(Object.entries(decidedAt).filter(([, where]) => where === 'default')).toEqual([])
  })

  test('are narrowed by the rules that their README lists', async () => {
    const readme = await readFile(new URL('../../profiles/README.md', import.meta.url), 'utf8')
    for (const { path, narrower } of keyRules)
      expect(readme).toContain(`| \`${path.join('.')}\` | ${narrower} |`)
  })

  test('the default has no mounts, no network, no credentials and no variable of its own', async () => {
    const { filesystem, network, credentials, environment } = await loadProfile('offline', shippedOnly)
    expect(filesystem.read.map(({ path }) => path)).toEqual(['/usr'])
    expect([filesystem.write, filesystem.mounts, filesystem.home]).toEqual([[], 'none', 'private'])
    expect([network, credentials]).toEqual([{ mode: 'none', allow: [] }, []])
    expect(environment).toEqual({ pass: ['LANG', 'TZ'], set: {}, override: {} })
  })
})

describe('a profile that is shown', () => {
  const full = `version: 1
name: full
extends: allowlisted-egress
widens: true
description: "two: lines # and\\nno comment"
filesystem: { read: [{ path: /usr, reason: 'it''s: "quoted"' }], write: [{ path: /srv, reason: w }], mounts: write }
network: { mode: allowlist, allow: [{ host: '*.example.com', port: 443, reason: r }, { host: b.example.org, port: 80, address: 10.1.2.3, private: true, reason: r }] }
credentials: [egress, env]
exec: none
environment: { pass: [FOO, { name: SSH_AUTH_SOCK, override: 'a: b' }], set: { A: 'true', B: '012', C: "x\\ny", NODE_OPTIONS: { value: --x, override: why } } }
syscalls: { allow: [ptrace], deny: [sync] }
limits: { pids: 20, cpu: 0.25 }
assertions: [{ assert: 'cannot read /x/**', reason: 'q: r' }]
`
  test.each([...shipped, 'full'])('%s loads again by itself, and is the same', async (name) => {
    await using at = await withProfiles({ full })
    const shown = showProfile(await loadProfile(name, at.search))
    await mkdir(`${at.path}/again`)
    const path = `${at.path}/again/${name}.yaml`
    await writeFile(path, formatProfile(shown), { mode: 0o600 })
    const again = showProfile(await loadProfile(path, { folders: [], owners: [uid] }))
    expect({ ...again, layers: null, decided_at: null }).toEqual({ ...shown, layers: null, decided_at: null })
  })
})

describe('a profile', () => {
  test('that states nothing has the least of everything', async () => {
    await using at = await withProfiles({ bare: profile('bare') })
    const { filesystem, network, decidedAt } = await loadProfile('bare', at.search)
    expect([filesystem.read, filesystem.mounts, network.mode]).toEqual([[], 'none', 'none'])
    expect(decidedAt['filesystem.mounts']).toBe('default')
  })

  test('can be named by its file', async () => {
    await using at = await withProfiles({
      base: profile('base', 'exec: none\n'),
      mine: profile('mine', 'extends: base\n'),
    })
    const { layers, exec } = await loadProfile(`${at.path}/mine.yaml`, shippedOnly)
    expect([layers, exec]).toEqual([['mine', 'base'], 'none'])
  })

  test('states a key in its parent’s place, and leaves the rest as the parent has it', async () => {
    await using at = await withProfiles({
      mine: profile(
        'mine',
        'extends: node\nlimits: { pids: 16, enforcement: { memory: required } }\nenvironment: { pass: [] }\n',
      ),
    })
    const { limits, environment, decidedAt } = await loadProfile('mine', at.search)
    expect([limits.pids, limits.memoryBytes, limits.enforcement.memory, limits.enforcement.cpu]).toEqual([
      16,
      1_073_741_824,
      'required',
      'best-effort',
    ])
    expect(environment.pass).toEqual([])
    expect([
      decidedAt['limits.pids'],
      decidedAt['limits.memory_bytes'],
      decidedAt['environment.pass'],
    ]).toEqual(['mine.yaml:4', 'node.yaml:8', 'mine.yaml:5'])
  })

  test('that grants more than its parent is refused, key by key, unless it says so', async () => {
    const wider = [
      'extends: workspace-read',
      'filesystem:',
      '  read: [{ path: /usr/lib, reason: r }, { path: /opt, reason: r }]',
      '  write: [{ path: /usr/share, reason: r }]',
      '  mounts: write',
      'network: { mode: allowlist, allow: [{ host: a.example.com, port: 443, reason: r }] }',
      'credentials: [env]',
      'environment: { pass: [LANG, LOG], set: { A: b } }',
      'syscalls: { allow: [ptrace] }',
      'limits: { memory_bytes: 1073741824, enforcement: { pids: best-effort } }',
      '',
    ].join('\n')
    await using at = await withProfiles({
      mine: profile('mine', wider),
      open: profile('open', `widens: true\n${wider}`),
    })
    expect(await at.said('mine')).toMatchInlineSnapshot(`
      "ERR_PROFILE_WIDENS
      mine.yaml:5:41: filesystem.read[1]: got /opt, expected a path within /usr (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:6:11: filesystem.write[0]: got /usr/share, expected nothing here (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:7:11: filesystem.mounts: got write, expected one of none, read (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:8:18: network.mode: got allowlist, expected one of none (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:8:37: network.allow[0]: got a.example.com:443, expected nothing here (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:9:15: credentials[0]: got env, expected nothing here (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:10:29: environment.pass[1]: got LOG, expected one of LANG, TZ (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:10:45: environment.set.A: got a value of its own for A, expected the parent’s value, or none (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:11:21: syscalls.allow[0]: got ptrace, expected nothing here (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:12:25: limits.memory_bytes: got 1073741824, expected at most 536870912 (as workspace-read has it); narrow it, or say \`widens: true\`
      mine.yaml:12:58: limits.enforcement.pids: got best-effort, expected one of required (as workspace-read has it); narrow it, or say \`widens: true\`"
    `)
    expect((await loadProfile('open', at.search)).filesystem.mounts).toBe('write')
  })

  test('whose parent widens is held to that parent, not to its parent’s', async () => {
    await using at = await withProfiles({
      mine: profile('mine', 'extends: workspace-write\nfilesystem: { mounts: write }\n'),
    })
    expect((await loadProfile('mine', at.search)).filesystem.mounts).toBe('write')
  })

  test('whose parent is wider than its own without saying so is refused as that parent would be', async () => {
    await using at = await withProfiles({
      a: profile('a', 'extends: b\n'),
      b: profile('b', 'extends: offline\ncredentials: [env]\n'),
    })
    expect(await at.said('a')).toContain('b.yaml:4:15: credentials[0]')
  })

  test('that extends itself, over however many, is refused with the circle', async () => {
    await using at = await withProfiles({
      a: profile('a', 'extends: b\n'),
      b: profile('b', 'extends: c\n'),
      c: profile('c', 'extends: a\n'),
    })
    expect(await at.said('a')).toContain('got a -> b -> c -> a')
  })

  test('that extends what is not there is told what it may have meant', async () => {
    await using at = await withProfiles({ a: profile('a', 'extends: ofline\n') })
    expect(await at.said('a')).toMatch(
      /^ERR_PROFILE_UNKNOWN\na\.yaml:3:10: extends: got "ofline".*did you mean offline\?$/,
    )
  })

  test('that gives a host an address which no sandbox may reach is refused', async () => {
    const allow = (more: string): string =>
      `extends: allowlisted-egress\nwidens: true\nnetwork: { mode: allowlist, allow: [{ host: a.example.com, port: 443, ${more}, reason: r }] }\n`
    await using at = await withProfiles({
      metadata: profile('metadata', allow('address: 169.254.169.254, private: true')),
      inside: profile('inside', allow('address: 10.0.0.7')),
      home: profile('home', allow('address: 10.0.0.7, private: true')),
    })
    expect(await at.said('metadata')).toContain(
      'metadata.yaml:5:80: network.allow[0].address: got "169.254.169.254" (metadata), expected an address that a sandbox may reach',
    )
    expect(await at.said('inside')).toContain('got "10.0.0.7" (private), expected a public address')
    await expect(loadProfile('home', at.search)).resolves.toBeDefined()
  })

  test('called otherwise than its file is refused', async () => {
    await using at = await withProfiles({ a: profile('b') })
    expect(await at.said('a')).toBe(
      'ERR_PROFILE_INVALID\na.yaml:2:7: name: got "b", expected a, the name of its file',
    )
  })

  test('with the name of a shipped one is refused, whatever it says', async () => {
    await using at = await withProfiles({ offline: profile('offline', 'filesystem: { mounts: write }\n') })
    expect(await at.said('offline')).toContain('the shipped profile of that name cannot be replaced')
    await using child = await withProfiles({
      offline: profile('offline'),
      mine: profile('mine', 'extends: offline\n'),
    })
    expect(await child.said('mine')).toContain('ERR_PROFILE_INVALID')
  })

  test('that two folders hold is refused: neither stands in for the other', async () => {
    await using one = await withProfiles({ mine: profile('mine') })
    await using two = await withProfiles({ mine: profile('mine', 'exec: none\n') })
    const error = await refusal(() => loadProfile('mine', { folders: [one.path, two.path], owners: [uid] }))
    expect(linesOf(error)).toContain('two files have it')
  })

  test('with a variable of a refused family needs an override, and keeps it', async () => {
    const environment = 'environment: { pass: [SSH_AUTH_SOCK], set: { node_options: x } }\n'
    const overridden =
      'environment: { pass: [{ name: SSH_AUTH_SOCK, override: signing }], set: { NODE_OPTIONS: { value: x, override: heap } } }\n'
    await using at = await withProfiles({ a: profile('a', environment), b: profile('b', overridden) })
    expect(await at.said('a')).toMatch(
      /^ERR_ENVIRONMENT_REFUSED\na\.yaml:3:23: environment\.pass\[0\]: got SSH_AUTH_SOCK.*\na\.yaml:3:60: environment\.set\.node_options/,
    )
    const { environment: resolved } = await loadProfile('b', at.search)
    expect(resolved).toEqual({
      pass: ['SSH_AUTH_SOCK'],
      set: { NODE_OPTIONS: 'x' },
      override: { SSH_AUTH_SOCK: 'signing', NODE_OPTIONS: 'heap' },
    })
  })

  test.each(['../offline', 'offline\n', '..', 'a/../../etc/passwd'])(
    'named %j is not looked for outside the folders',
    async (name) => {
      await using at = await withProfiles({})
      await mkdir(`${at.path}/inner`)
      const error = await refusal(() => loadProfile(name, { folders: [`${at.path}/inner`], owners: [uid] }))
      expect(error.code).toBe('ERR_PROFILE_UNKNOWN')
    },
  )

  test('that somebody else can write is refused', async () => {
    await using at = await withProfiles({ a: profile('a') })
    await writeFile(`${at.path}/b.yaml`, profile('b'))
    await chmod(`${at.path}/b.yaml`, 0o666)
    expect((await refusal(() => loadProfile('b', at.search))).code).toBe('ERR_CONFIG_UNSAFE')
    expect((await loadProfile('a', at.search)).name).toBe('a')
  })
})

test('profiles are looked for beside the configuration, then in the user’s folder, then in the machine’s', () => {
  const host = { env: {}, home: '/home/u', uid: 1000 }
  expect(profileSearch(host, { configFolder: '/etc/app' }).folders).toEqual([
    '/etc/app/profiles',
    '/home/u/.config/sallyport/profiles',
    '/etc/sallyport/profiles',
  ])
})

test('the list shows what does not load, and why', async () => {
  await using at = await withProfiles({
    broken: profile('broken', 'exce: none\n'),
    mine: profile('mine', 'extends: node\n'),
  })
  const listed = await listProfiles(at.search)
  expect(listed.find(({ name }) => name === 'mine')).toMatchObject({
    valid: true,
    extends: 'node',
    mounts: 'read',
    shipped: false,
  })
  expect(listed.find(({ name }) => name === 'broken')).toMatchObject({ valid: false })
  expect(listed.find(({ name }) => name === 'broken')?.description).toContain('did you mean exec?')
})
