// From files to settings: what is found, which scope decides, what is said about it, and what is refused.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseDocument } from '../../src/config/document.ts'
import { SallyportError } from '../../src/errors.ts'
import { loadSettings, settingsOf, type LoadOptions } from '../../src/config/load.ts'
import { validate } from '../../src/schema/validate.ts'
import { linesOf, refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'

const uid = process.getuid?.() ?? 0

/** A machine of the test's own: an enterprise folder, a home, and whatever files they hold. */
async function machine(files: Readonly<Record<string, string>>) {
  const dir = await tempDir()
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(`${dir.path}/${name}`), { recursive: true, mode: 0o755 })
    await writeFile(`${dir.path}/${name}`, text, { mode: 0o600 })
  }
  const options = { env: {}, home: `${dir.path}/home`, uid, enterprise: `${dir.path}/etc` }
  const load = (more: Partial<LoadOptions> = {}) => loadSettings({ ...options, ...more })
  const said = async (more: Partial<LoadOptions> = {}) =>
    linesOf(await refusal(() => load(more))).replaceAll(`${dir.path}/`, '')
  return { path: dir.path, options, load, said, [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose]() }
}

const user = 'home/.config/sallyport/sallyport.yaml'
const enterprise = 'etc/sallyport.yaml'
const servers = (text: string): string => `version: 1\nservers:\n${text.replaceAll(/^/gm, '  ')}\n`

describe('finding', () => {
  const marked = (mode: string): string => `version: 1\nmode: ${mode}\n`

  test('--config is before $SALLYPORT_CONFIG, that before the user’s file', async () => {
    await using at = await machine({
      'a.yaml': marked('flag'),
      'b.yaml': marked('variable'),
      [user]: marked('user'),
    })
    const env = { SALLYPORT_CONFIG: `${at.path}/b.yaml` }
    expect((await at.load({ path: `${at.path}/a.yaml`, env })).mode).toBe('flag')
    expect((await at.load({ env })).mode).toBe('variable')
    expect((await at.load()).mode).toBe('user')
  })

  test('$XDG_CONFIG_HOME moves the user’s folder, where it is absolute', async () => {
    await using at = await machine({
      'xdg/sallyport/sallyport.json': '{"version": 1, "mode": "xdg"}',
      [user]: marked('user'),
    })
    expect((await at.load({ env: { XDG_CONFIG_HOME: `${at.path}/xdg` } })).mode).toBe('xdg')
    expect((await at.load({ env: { XDG_CONFIG_HOME: 'xdg' } })).mode).toBe('user')
  })

  test('no file at all is refused, and says where it looked', async () => {
    await using at = await machine({})
    expect(await at.said()).toMatch(
      /^ERR_CONFIG_NOT_FOUND\nno configuration file: looked at --config, .*home\/\.config\/sallyport, etc for/,
    )
  })

  test('a file that is named and not there is refused', async () => {
    await using at = await machine({ [user]: marked('user') })
    expect(await at.said({ path: `${at.path}/absent.yaml` })).toBe(
      'ERR_CONFIG_NOT_FOUND\nabsent.yaml: no such file, though --config names it; write it, or name another',
    )
    expect(await at.said({ env: { SALLYPORT_CONFIG: 'relative.yaml' } })).toContain(
      'expected an absolute path',
    )
  })

  test('two files in one folder are refused: nobody knows which is meant', async () => {
    await using at = await machine({
      [user]: marked('a'),
      [user.replace('.yaml', '.json')]: '{"version": 1}',
    })
    expect(await at.said()).toContain('got 2 configuration files')
  })
})

test('the configuration of the design is valid, key by key', async () => {
  const text = await readFile(new URL('../golden/whole-config.yaml', import.meta.url), 'utf8')
  const validated = validate('config', parseDocument('sallyport.yaml', text).value)
  expect(validated.ok ? [] : validated.problems).toEqual([])
})

describe('a server', () => {
  test('gets every default, absolute paths, and its variables', async () => {
    await using at = await machine({
      'app/sallyport.yaml': servers(
        [
          'files:',
          '  command: node',
          '  profile: workspace-read',
          '  package: { source: lib, target: /app, with: [../node_modules] }',
          '  mounts: [{ source: ./docs, target: /workspace, reason: the documents }]',
          "  env: { A: plain, B: '${env:REGION}', C: { value: '${env:ABSENT}', default: fallback }, NODE_OPTIONS: { value: x, override: heap } }",
        ].join('\n'),
      ),
    })
    const { servers: loaded } = await at.load({
      path: `${at.path}/app/sallyport.yaml`,
      env: { REGION: 'eu' },
    })
    const server = loaded.get('files')
    expect(server).toMatchObject({
      directory: `${at.path}/app`,
      scope: 'file',
      enabled: true,
      trust: 'untrusted',
      package: {
        source: `${at.path}/app/lib`,
        target: '/app',
        with: [`${at.path}/node_modules`],
        digest: null,
      },
      mounts: [
        { source: `${at.path}/app/docs`, target: '/workspace', access: 'read', reason: 'the documents' },
      ],
      env: { A: 'plain', B: 'eu', C: 'fallback', NODE_OPTIONS: 'x' },
      envOverride: { NODE_OPTIONS: 'heap' },
      unenforceable: [],
    })
    expect(JSON.stringify(server)).not.toContain('undefined')
  })

  test.each([
    ['', '', true],
    ['address: 10.0.0.7, private: true, ', 'address: 10.0.0.7, private: true, ', true],
    ['address: 93.184.216.34, private: true, ', 'address: 93.184.216.34, ', true],
    ['address: 93.184.216.34, ', '', false],
    ['', 'address: 93.184.216.34, ', false],
    ['address: 93.184.216.34, ', 'address: 93.184.216.35, ', false],
    ['address: 93.184.216.34, ', 'address: 93.184.216.34, private: true, ', false],
  ])('under the profile’s host with {%s}, its own with {%s}: %s', async (above, own, isWithin) => {
    const entry = (more: string): string => `{ host: api.github.com, port: 443, ${more}reason: r }`
    await using at = await machine({
      [user]: servers(`a:\n  command: node\n  profile: open\n  egress: [${entry(own)}]`),
      'home/.config/sallyport/profiles/open.yaml': `version: 1\nname: open\nextends: allowlisted-egress\nwidens: true\nnetwork: { mode: allowlist, allow: [${entry(above)}] }\n`,
    })
    const loaded = await at.load().then(
      () => true,
      (error: unknown) => {
        expect(SallyportError.from(error)).toMatchObject({
          code: 'ERR_PROFILE_EXCEEDED',
          message: expect.stringContaining('no more than its list says of that host'),
        })
        return false
      },
    )
    expect(loaded).toBe(isWithin)
  })

  test('has its hosts, and its credentials with where each comes from', async () => {
    const asks = [
      'a:',
      '  command: node',
      '  profile: open',
      '  egress: [{ host: api.github.com, port: 443, reason: r }, { host: db.github.com, port: 5432, reason: r }]',
      '  credentials:',
      '    - { use: github, inject: egress, as: GITHUB_TOKEN, hosts: ["api.github.com:443"], ca_file: own.pem }',
    ].join('\n')
    const open =
      'version: 1\nname: open\nextends: allowlisted-egress\nwidens: true\nnetwork: { mode: allowlist, allow: [{ host: "*.github.com", port: 443, reason: r }, { host: db.github.com, port: 5432, reason: r }] }\n'
    await using at = await machine({
      [user]: `${servers(asks)}\ncredentials: { github: { file: token }, other: { command: [/usr/bin/pass, show] } }\n`,
      'home/.config/sallyport/profiles/open.yaml': open,
    })
    const { servers: loaded, credentials } = await at.load()
    const folder = `${at.path}/home/.config/sallyport`
    expect(credentials).toEqual({
      github: { kind: 'file', path: `${folder}/token` },
      other: { kind: 'command', argv: ['/usr/bin/pass', 'show'] },
    })
    expect(loaded.get('a')).toMatchObject({
      egress: [
        { host: 'api.github.com', port: 443, address: null, private: false, tls: true, reason: 'r' },
        { host: 'db.github.com', port: 5432, address: null, private: false, tls: false, reason: 'r' },
      ],
      egressWhen: 'always',
      instance: 'session',
      pool: { size: 2, ageMs: 300_000 },
      credentials: [
        {
          use: 'github',
          inject: 'egress',
          as: 'GITHUB_TOKEN',
          hosts: [{ host: 'api.github.com', port: 443, caFile: `${folder}/own.pem` }],
          headers: ['authorization'],
          query: false,
          body: false,
          websocket: false,
          placeholder: { prefix: '', length: 40 },
        },
      ],
    })
  })

  test('cannot be changed after loading', async () => {
    await using at = await machine({ [user]: servers('a: { command: node }') })
    const server = (await at.load()).servers.get('a')
    expect(() => Object.assign(server?.tools ?? {}, { allow: ['*'] })).toThrow(TypeError)
    expect(Object.isFrozen(server?.args)).toBe(true)
  })

  test('that is disabled needs no variables, and says why it is off', async () => {
    await using at = await machine({
      [user]: servers(
        "a: { command: node, enabled: false, env: { X: '${env:ABSENT}' } }\nb: { command: node, tags: [ci], env: { X: '${env:ABSENT}' } }\nc: { command: node, tags: [default] }",
      ),
    })
    const { servers: loaded } = await at.load()
    expect([...loaded.values()].map(({ enabled, disabledReason }) => [enabled, disabledReason])).toEqual([
      [false, 'server a is disabled by its entry'],
      [false, 'server b runs in the modes ci, and the mode is default'],
      [true, null],
    ])
  })

  test('that asks for what this version cannot enforce loads, and names each thing', async () => {
    const asks = [
      'a:',
      '  command: node',
      '  profile: open',
      '  driver: bubblewrap',
      '  image: x@sha256:0',
      '  runtime: runsc',
      '  egress: [{ host: api.github.com, port: 443, reason: r }]',
      '  egress_when: calling',
      '  credentials: [{ use: github, inject: egress, as: GITHUB_TOKEN, hosts: ["api.github.com:443"] }]',
    ].join('\n')
    const open =
      'version: 1\nname: open\nextends: allowlisted-egress\nwidens: true\nnetwork: { mode: allowlist, allow: [{ host: "*.github.com", port: 443, reason: r }] }\n'
    await using at = await machine({
      [user]: `${servers(asks)}\ncredentials: { github: { env: GITHUB_TOKEN } }\n`,
      'home/.config/sallyport/profiles/open.yaml': open,
    })
    expect((await at.load()).servers.get('a')?.unenforceable).toEqual([
      'image without driver: docker',
      'runtime without driver: docker',
    ])
  })

  test('is confined by the driver of the whole configuration, unless it says another', async () => {
    const entries = 'a: { command: node, image: x }\nb: { command: node, driver: bubblewrap }'
    await using at = await machine({
      [enterprise]: 'version: 1\ndriver: docker\n',
      [user]: `driver: bubblewrap\n${servers(entries)}`,
    })
    const { driver, servers: found } = await at.load()
    const named = [...found.values()].map((server) => [server.name, server.driver, server.unenforceable])
    expect({ driver, named }).toEqual({
      driver: 'docker',
      named: [
        ['a', 'docker', []],
        ['b', 'bubblewrap', []],
      ],
    })
  })

  test('that exposes everything, or may write, is warned of', async () => {
    await using at = await machine({
      [user]: servers(
        'a: { command: node }\nb: { command: node, tools: { allow: [x] } }\nc: { command: node, trust: trusted, profile: workspace-write, mounts: [{ source: /data, target: /data, access: write, reason: r }] }',
      ),
    })
    const { warnings } = await at.load()
    expect(warnings).toEqual([
      'server a is untrusted and its tools.allow is empty: every tool that it has is exposed',
      'server c may write to /data: what others run from there later runs unconfined',
    ])
  })
})

describe('a rule', () => {
  const warned = async (...rules: readonly object[]) => {
    const all = JSON.stringify({ version: 1, rules })
    await using at = await machine({ [user]: all })
    return (await at.load()).warnings
  }
  const about = (pointer: string, glob = '/docs/**') => ({
    permission: 'mcp:files:read',
    action: 'allow',
    where: { [pointer]: glob },
  })

  test('that looks at one element of a list alone is warned of, with the pointer to every one', async () => {
    expect(await warned(about('/paths/0'), about('/edits/12/path'), about('/paths/*'), about('/v1'))).toEqual(
      [
        'sallyport.yaml rules[0] looks at "/paths/0", which is one element where it leads to a list, and not at the others; write "/paths/*" for every one',
        expect.stringContaining('write "/edits/*/path" for every one'),
      ],
    )
  })

  test('whose glob is written as shells write them is warned of: their letters stand for themselves', async () => {
    const globs = ['[ab]*', '{a,b}', 'pages/[id]/**', '{"a": 1}', 'https://[::1]/**', '/a{b', 'x[]']
    expect(await warned(...globs.map((glob) => about('/path', glob)))).toEqual([
      'sallyport.yaml rules[0] has the glob "[ab]*", in which only * and ? stand for others, and [ and { for themselves; write a rule for each that is meant',
      expect.stringContaining('rules[1] has the glob "{a,b}"'),
      expect.stringContaining('rules[2] has the glob "pages/[id]/**"'),
    ])
  })
})

describe('scopes', () => {
  test('the enterprise’s server of a name is the server, and that is said', async () => {
    await using at = await machine({
      [enterprise]: servers('files: { command: node, version: "1" }'),
      [user]: servers('files: { command: python3, version: "2" }\nmine: { command: node }'),
    })
    const settings = await at.load()
    expect([...settings.servers.values()].map(({ name, command, scope }) => [name, command, scope])).toEqual([
      ['files', 'node', 'enterprise'],
      ['mine', 'node', 'user'],
    ])
    expect(settings.sources.map(({ scope }) => scope)).toEqual(['enterprise', 'user'])
    expect(settings.warnings.join('\n')).toContain('server files is the one of')
  })

  test('a key that the enterprise states is not the user’s to state: its commands are the commands', async () => {
    await using at = await machine({
      [enterprise]:
        'version: 1\nallowed_commands: [node]\nrules: [{ permission: "mcp:*:*", action: deny }]\n',
      [user]:
        'version: 1\nallowed_commands: [node, { name: evil, path: ./evil }]\nmode: ci\nrules: [{ permission: "mcp:*:*", action: allow }]\n',
    })
    const settings = await at.load()
    expect(settings.allowedCommands).toEqual([{ name: 'node', path: null, interpreter: null }])
    expect(settings.mode).toBe('ci')
    expect(settings.rules.map(({ action }) => action)).toEqual(['deny', 'allow'])
    expect(settings.warnings).toHaveLength(1)
    expect(settings.warnings[0]).toContain('allowed_commands is decided by')
  })

  test('an exclusive enterprise file is the only one; a file named beside it is refused', async () => {
    await using at = await machine({
      [enterprise]: 'version: 1\nexclusive: true\n',
      [user]: servers('mine: { command: node }'),
      'other.yaml': 'version: 1\n',
    })
    expect((await at.load()).servers.size).toBe(0)
    expect(await at.said({ path: `${at.path}/other.yaml` })).toMatch(
      /^ERR_CONFIG_SCOPE\nother\.yaml: got a file named by --config, expected none: etc\/sallyport\.yaml is exclusive/,
    )
  })

  test('a user’s profile cannot redefine what an enterprise server may do', async () => {
    const locked = (rest: string): string => `version: 1\nname: locked\n${rest}`
    await using at = await machine({
      [enterprise]: servers('files: { command: node, profile: locked }'),
      'etc/profiles/locked.yaml': locked('exec: none\n'),
      'home/.config/sallyport/profiles/locked.yaml': locked('filesystem: { mounts: write }\n'),
    })
    expect((await at.load()).profiles.get('locked')).toMatchObject({
      exec: 'none',
      filesystem: { mounts: 'none' },
    })
    await writeFile(`${at.path}/${user}`, servers('mine: { command: node, profile: locked }'), {
      mode: 0o600,
    })
    // Nor is the user's server given the enterprise's in the place of the one that may have been meant.
    expect(await at.said()).toMatch(/locked.*two files have it/s)
  })

  test('relative paths go from the folder of the file that says them', async () => {
    await using at = await machine({
      [enterprise]: 'version: 1\nallowed_commands: [{ name: n, path: bin/n }]\n',
      [user]: 'version: 1\n',
    })
    expect((await at.load()).allowedCommands[0]?.path).toBe(`${at.path}/etc/bin/n`)
  })
})

describe('SALLYPORT_STARTUP_CONCURRENCY', () => {
  test('overrides the file', async () => {
    await using at = await machine({ [user]: 'version: 1\nstartup: { concurrency: 5 }\n' })
    expect((await at.load()).startup.concurrency).toBe(5)
    expect((await at.load({ env: { SALLYPORT_STARTUP_CONCURRENCY: '1' } })).startup.concurrency).toBe(1)
  })

  test.each(['0', '-1', '1.5', '101', '', ' 3', '3\n', 'many'])('%j is refused', async (value) => {
    await using at = await machine({ [user]: 'version: 1\n' })
    expect(await at.said({ env: { SALLYPORT_STARTUP_CONCURRENCY: value } })).toContain(
      'expected a whole number from 1 to 100',
    )
  })
})

test('a value that never was a file is judged like one', async () => {
  await using at = await machine({})
  const value = {
    version: 1,
    servers: {
      run: {
        command: 'node',
        profile: 'workspace-read',
        mounts: [{ source: 'docs', target: '/d', reason: 'asked for' }],
      },
    },
  }
  const settings = await settingsOf(value, at.path, at.options)
  expect(settings.servers.get('run')?.mounts[0]?.source).toBe(`${at.path}/docs`)
  const error = await refusal(() =>
    settingsOf({ version: 1, servers: { run: { command: '/bin/sh' } } }, at.path, at.options),
  )
  expect(error.message).toMatch(/^the command line: servers\.run\.command: got "\/bin\/sh"/)
})
