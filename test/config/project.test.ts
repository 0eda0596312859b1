// A project's file takes away, and can grant nothing; a host that names a folder reads nothing through it.
import { chown, link, mkdir, symlink, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load.ts'
import { narrowByProject } from '../../src/config/project.ts'
import { linesOf, refusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nobody } from '../support/user.ts'

const uid = process.getuid?.() ?? 0
const operator = `version: 1
servers:
  files: { command: node, tools: { allow: [read, write], deny: [drop] } }
  other: { command: node }
  off: { command: node, enabled: false }
rules:
  - { permission: 'mcp:files:*', action: allow }
`

async function withProject(text: string | null) {
  const dir = await tempDir()
  const project = `${dir.path}/project`
  await mkdir(project, { mode: 0o755 })
  await writeFile(`${dir.path}/sallyport.yaml`, operator, { mode: 0o600 })
  if (text !== null) await writeFile(`${project}/.sallyport.yaml`, text, { mode: 0o600 })
  const options = {
    path: `${dir.path}/sallyport.yaml`,
    env: {},
    home: dir.path,
    uid,
    enterprise: `${dir.path}/etc`,
  }
  const load = () => loadSettings({ ...options, project })
  const said = async () => linesOf(await refusal(load)).replaceAll(`${project}/`, '')
  return {
    dir: dir.path,
    project,
    options,
    load,
    said,
    [Symbol.asyncDispose]: () => dir[Symbol.asyncDispose](),
  }
}

test('denies tools, asks or denies by rule before every other rule, and switches servers off', async () => {
  await using at = await withProject(`version: 1
servers:
  files: { tools: { deny: [write] } }
  other: { enabled: false }
rules:
  - { permission: 'mcp:files:read', action: ask }
`)
  const { servers, rules, sources } = await at.load()
  expect(servers.get('files')?.tools).toMatchObject({ allow: ['read', 'write'], deny: ['drop', 'write'] })
  expect(servers.get('other')).toMatchObject({
    enabled: false,
    disabledReason: `server other is disabled by ${at.project}/.sallyport.yaml`,
  })
  expect(servers.get('off')?.disabledReason).toBe('server off is disabled by its entry')
  expect(rules.map(({ action, origin }) => [action, origin])).toEqual([
    ['ask', '.sallyport.yaml rules[0]'],
    ['allow', 'sallyport.yaml rules[0]'],
  ])
  expect(sources.at(-1)).toMatchObject({ scope: 'project' })
})

test('is refused where it is long, since everybody waits while it is read and where its rules are asked', async () => {
  const rules = Array.from({ length: 700 }, (_, n) => `  - { permission: 'mcp:files:r${n}', action: deny }\n`)
  await using at = await withProject(`version: 1\nrules:\n${rules.join('')}`)
  expect(await at.said()).toMatch(/^\.sallyport\.yaml: got \d+ bytes, expected at most 32768 bytes$/m)
})

test('that is not there changes nothing', async () => {
  await using at = await withProject(null)
  const settings = await loadSettings(at.options)
  expect(await narrowByProject(settings, at.project, [uid])).toBe(settings)
  expect(await narrowByProject(settings, `${at.project}/absent`, [uid])).toBe(settings)
})

test('is not read unless somebody names its folder', async () => {
  await using at = await withProject('version: 1\nservers: { files: { enabled: false } }\n')
  expect((await loadSettings(at.options)).servers.get('files')?.enabled).toBe(true)
})

test('that narrows a server which is not configured is said', async () => {
  await using at = await withProject('version: 1\nservers: { elsewhere: { enabled: false } }\n')
  expect((await at.load()).warnings.join('\n')).toContain('narrows server elsewhere, which is not configured')
})

describe('is refused, ERR_CONFIG_SCOPE, where it', () => {
  test.each([
    ['allows a call', 'rules: [{ permission: "mcp:*:*", action: allow }]', 'rules[0].action'],
    ['switches a server on', 'servers: { off: { enabled: true } }', 'servers.off.enabled'],
    ['exposes tools', 'servers: { files: { tools: { allow: [x] } } }', 'servers.files.tools.allow'],
    ['brings a command', 'servers: { files: { command: node } }', 'servers.files.command'],
    ['mounts', 'servers: { files: { mounts: [] } }', 'servers.files.mounts'],
    ['opens egress', 'servers: { files: { egress: [] } }', 'servers.files.egress'],
    ['asks for credentials', 'servers: { files: { credentials: [] } }', 'servers.files.credentials'],
    ['sets variables', 'servers: { files: { env: {} } }', 'servers.files.env'],
    ['chooses a profile', 'servers: { files: { profile: workspace-write } }', 'servers.files.profile'],
    ['allows commands', 'allowed_commands: [sh]', 'allowed_commands'],
    ['defines credentials', 'credentials: {}', 'credentials'],
    ['shuts others out', 'exclusive: true', 'exclusive'],
  ])('%s', async (_, text, path) => {
    await using at = await withProject(`version: 1\n${text}\n`)
    const [code, line] = (await at.said()).split('\n')
    expect(code).toBe('ERR_CONFIG_SCOPE')
    expect(line).toContain(`: ${path}: got`)
  })
})

test('with a key that nobody knows is plainly invalid', async () => {
  await using at = await withProject('version: 1\nservrs: {}\n')
  expect(await at.said()).toMatch(/^ERR_CONFIG_INVALID\n.*did you mean servers\?/)
})

test('with a denial of what no rule decides is plainly invalid, for it would deny nothing', async () => {
  const rule = (method: string): string => `rules: [{ permission: "mcp:files:${method}", action: deny }]`
  await using at = await withProject(`version: 1\n${rule('prompt/get')}\n`)
  expect(await at.said()).toMatch(
    /^ERR_CONFIG_INVALID\n.*rules\[0\]\.permission.*did you mean prompts\/get\?/,
  )
  await using other = await withProject(`version: 1\n${rule('prompts/get')}\n`)
  expect((await other.load()).rules).toHaveLength(2)
})

describe('is not a way to read other files', () => {
  const secret = 'top: secret\nvery: secret\n'

  test.each(['symbolic', 'hard'])('through a %s link', async (kind) => {
    await using at = await withProject(null)
    await writeFile(`${at.dir}/secret`, secret, { mode: 0o600 })
    const make = kind === 'hard' ? link : symlink
    await make(`${at.dir}/secret`, `${at.project}/.sallyport.yaml`)
    const said = await at.said()
    expect(said).toContain('ERR_CONFIG_UNSAFE')
    expect(said).not.toContain('top')
  })

  test.runIf(isRoot)('of another user: the file must be root’s, the daemon’s or the host’s', async () => {
    await using at = await withProject('version: 1\nservers: { files: { enabled: false } }\n')
    const settings = await loadSettings(at.options)
    await chown(`${at.project}/.sallyport.yaml`, nobody, nobody)
    const error = await refusal(() => narrowByProject(settings, at.project, [uid]))
    expect(error.code).toBe('ERR_CONFIG_UNSAFE')
    expect((await narrowByProject(settings, at.project, [uid, nobody])).servers.get('files')?.enabled).toBe(
      false,
    )
  })

  test('from a relative folder', async () => {
    await using at = await withProject(null)
    const settings = await loadSettings(at.options)
    expect((await refusal(() => narrowByProject(settings, 'project', [uid]))).code).toBe('ERR_INVALID_PARAMS')
  })
})
