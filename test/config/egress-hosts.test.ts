// Hostile spellings of a host where configuration names one: none of them loads, and none becomes another host.
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load.ts'
import { hostileHosts, hostilePorts, shown } from '../support/hostile-hosts.ts'
import { linesOf, refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

type Written = { readonly host: unknown; readonly port: unknown }

/** Loads a server whose profile and entry both name the host; gives its grants, or what is said against it. */
async function loads(written: Written): Promise<readonly object[] | string> {
  await using dir = await tempDir()
  const entry = { ...written, reason: 'r' }
  const files = {
    'sallyport.yaml': {
      version: 1,
      servers: { a: { command: 'node', profile: 'open', egress: [entry] } },
    },
    'profiles/open.yaml': {
      version: 1,
      name: 'open',
      extends: 'node',
      widens: true,
      network: { mode: 'allowlist', allow: [entry] },
    },
  }
  for (const [name, value] of Object.entries(files)) {
    const path = join(dir.path, 'home/.config/sallyport', name)
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    await writeFile(path, JSON.stringify(value), { mode: 0o600 })
  }
  const options = {
    env: {},
    home: join(dir.path, 'home'),
    uid: process.getuid?.() ?? 0,
    enterprise: join(dir.path, 'etc'),
  }
  try {
    return (await loadSettings(options)).servers.get('a')?.egress ?? []
  } catch (error) {
    return linesOf(
      await refusal(() => {
        throw error
      }),
    )
  }
}

test('a plain name loads, and is the host that it says', async () => {
  expect(await loads({ host: 'api.allowed.com', port: 443 })).toMatchObject([
    { host: 'api.allowed.com', port: 443, private: false, tls: true },
  ])
  expect(await loads({ host: '*.allowed.com', port: 443 })).toMatchObject([{ host: '*.allowed.com' }])
})

describe('an entry does not load', () => {
  const rows = hostileHosts.filter(
    ({ outcome, text }) => outcome !== 'unlisted' && text !== '*.allowed.com', // which is a pattern here
  )
  test.each(rows.map(({ group, text }) => [group, shown(text), text] as const))(
    'group %i: %s',
    async (_, __, text) => {
      const said = await loads({ host: text, port: 443 })
      expect(said).toMatch(/^ERR_(CONFIG|PROFILE)_/)
      expect(said).toContain('host')
    },
  )

  test.each(hostilePorts.map((port) => [shown(port), port] as const))(
    'group 33: port %s',
    async (_, port) => {
      expect(await loads({ host: 'allowed.com', port })).toMatch(/^ERR_(CONFIG|PROFILE)_/)
      expect(await loads({ host: `allowed.com:${port}`, port: 443 })).toMatch(/^ERR_(CONFIG|PROFILE)_/)
    },
  )

  test.each(['*', '*.com', '*.*.com', 'a.*.com', '*a.allowed.com', '**.allowed.com', '.allowed.com'])(
    'a pattern that is too wide or none: %s',
    async (host) => {
      expect(await loads({ host, port: 443 })).toMatch(/^ERR_(CONFIG|PROFILE)_/)
    },
  )
})

describe('an entry is for the name that it says and no other', () => {
  const rows = hostileHosts.filter(({ outcome }) => outcome === 'unlisted')
  test.each(rows.map(({ group, text }) => [group, shown(text), text] as const))(
    'group %i: %s',
    async (_, __, text) => {
      const said = await loads({ host: text, port: 443 })
      if (typeof said === 'string') expect(said).toMatch(/^ERR_(CONFIG|PROFILE)_/)
      else expect(said).toMatchObject([{ host: text }])
    },
  )
})
