// What operators are shown of a server before they trust it with anything, in the words of the control protocol.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { bodiesOf } from '../support/witness.ts'

const kind = `Be kind.\u001b[31m\n${'And patient. '.repeat(400)}`
const introduced = (more: object = {}): object =>
  fixture('changes', { args: ['/app/changes.mjs', '/tmp/record', kind], ...more })

test('an operator who accepts a server reads how it introduces itself to a model, cut and made harmless', async () => {
  await using at = await daemon(
    configOf({ manual: introduced({ acceptance: 'manual' }), quiet: fixture('echo') }),
  )
  await using operator = await at.connect('operator')
  const { instructions } = await operator.call('servers/declare', { server: 'manual' })
  expect(instructions).toHaveLength(2048)
  expect(instructions).toMatch(/^Be kind\. And patient\. .*…$/)
  expect((await operator.call('servers/declare', { server: 'quiet' })).instructions).toBeNull()
  const path = join(at.folder, 'manual.yaml')
  await at.run(['declare', 'manual', '--out', path])
  expect(readFileSync(path, 'utf8')).toMatch(
    /\n# An acceptance covers its instructions.*\n# {3}Be kind\. And/,
  )
  const shown = async () => (await at.client.call('servers/get', { server: 'manual' })).instructions

  await at.client.call('servers/start', { server: 'manual' })
  expect(await shown()).toBeNull() // nobody accepted them
  expect((await at.run(['accept', 'manual', '--declaration', path])).status).toBe(0)
  expect(await shown()).toBe(instructions)
  expect((await at.run(['show', 'manual'])).stdout).toContain('Be kind. And patient.')
})

const registration = {
  version: '7',
  justification: 'tried out',
  tags: ['ci'],
  surface: 'dynamic',
  acceptance: 'manual',
  trust: 'untrusted',
}

test('the seven fields of a registration are shown and on record, wherever it was made', async () => {
  const entry = { ...fixture('echo', registration) }
  await using at = await daemon(configOf({ written: entry }, { mode: 'ci' }))
  await using operator = await at.connect('operator')
  await operator.call('servers/add', { server: 'added', entry })
  // What the configuration names is read once its doors are open.
  await eventually(async () => (await operator.call('servers/get', { server: 'written' })).command !== null)
  for (const server of ['written', 'added'])
    expect(await operator.call('servers/get', { server })).toMatchObject({
      name: server,
      command: { name: 'node', args: ['/app/echo.mjs'], sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ...registration,
      declared: null,
    })
  const args = ['/app/echo.mjs']
  const said = { command: 'node', args, version: '7', justification: 'tried out', tags: ['ci'] }
  expect(bodiesOf(at.stateDir, 'config.applied')).toMatchObject([
    { servers: [{ server: 'written', ...said, trust: 'untrusted', acceptance: 'manual', declared: null }] },
  ])
  expect(bodiesOf(at.stateDir, 'server.registered')).toMatchObject([
    { server: 'added', entry: { ...said, trust: 'untrusted', acceptance: 'manual' } },
  ])
})

test('what the operator vouches for is drafted as reading, unless the server says otherwise', async () => {
  const tools = { allow: [], deny: [], read_only: ['fail', 'echo'] }
  await using at = await daemon(configOf({ echo: fixture('echo', { acceptance: 'manual', tools }) }))
  await using operator = await at.connect('operator')
  const { declaration, claims } = await operator.call('servers/declare', { server: 'echo' })
  expect(declaration.tools).toMatchObject({
    fail: { side_effects: ['read'], idempotency: 'idempotent' },
    error: { side_effects: ['read', 'write', 'execute'], idempotency: 'unknown' },
  })
  expect(claims['fail']).toMatchObject({
    side_effects: expect.stringContaining('vouched for by tools.read_only'),
    idempotency: expect.stringContaining('vouched for'),
  })
  expect(claims['echo']?.['side_effects']).toContain('claimed by the server: readOnlyHint: true')
  await operator.call('declarations/accept', { server: 'echo' })
  expect((await operator.call('tools/describe', { server: 'echo', tool: 'fail' })).declaration).toMatchObject(
    { side_effects: ['read'] },
  )
})

/** Every key at any depth, but in what others wrote: schemas, annotations, environments. */
const keysIn = (value: unknown): readonly string[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([key, inner]) =>
        ['input_schema', 'annotations', 'environment', 'parameters', 'body'].includes(key)
          ? [key]
          : [...(Array.isArray(value) ? [] : [key]), ...keysIn(inner)],
      )

test('what is read as JSON has the names of the control protocol', async () => {
  await using at = await daemon(configOf({ echo: fixture('echo') }))
  await at.client.call('tools/call', { server: 'echo', tool: 'echo', arguments: {} })
  const verbs = ['doctor', 'ps', 'show echo', 'tools', 'logs echo', 'test echo', 'trust list', 'permits list']
  for (const verb of [...verbs, 'approvals list', 'hold', 'audit tail', 'audit verify', 'declare echo']) {
    const { stdout } = await at.run([...verb.split(' '), '--json'])
    const keys = keysIn(JSON.parse(stdout.split('\n')[0] ?? ''))
    expect(
      keys.filter((key) => /[A-Z]/.test(key) && !key.startsWith('ERR_')),
      verb,
    ).toEqual([])
  }
})

test('doctor says of a daemon that runs what that holds limits by, as hello does', async () => {
  await using at = await daemon(configOf({ echo: fixture('echo') }))
  const { memory, pids, cpu } = at.client.hello.limits
  const { controls } = JSON.parse((await at.run(['doctor', '--json'])).stdout)
  const said = (name: string): unknown =>
    controls.find(({ control }: { readonly control: string }) => control === name)?.enforced_by ?? 'none'
  expect([memory, pids, cpu]).toEqual([said('memory'), said('pids'), said('cpu')])
  await at.client.call('tools/call', { server: 'echo', tool: 'echo', arguments: {} })
  const { servers } = await at.client.call('servers/list', {})
  const held = servers[0]?.instances[0]?.limits
  expect([held?.memory.enforced_by, held?.pids.enforced_by]).toEqual([memory, pids])
})

test('a tool under a name by which hosts know tools of their own is pointed out to who accepts it, and in the event', async () => {
  const names = ['Bash', 'web-fetch', 'bashful']
  const borrowed = ['Bash', 'web-fetch']
  const entry = (acceptance: string): object =>
    fixture('collides', { args: ['/app/collides.mjs', ...names], acceptance })
  await using at = await daemon(configOf({ read: entry('manual'), seen: entry('first-use') }))
  await using operator = await at.connect('operator')
  const { claims } = await operator.call('servers/declare', { server: 'read' })
  expect(names.map((name) => claims[name]?.['name'])).toEqual([
    expect.stringContaining('a tool of their own'),
    expect.stringContaining('a tool of their own'),
    undefined,
  ])
  const path = join(at.folder, 'read.yaml')
  await at.run(['declare', 'read', '--out', path])
  expect(readFileSync(path, 'utf8')).toMatch(
    /\n {2}Bash:\n {4}version: [^\n]*# hosts know a tool of their own by this name[^\n]*; yours to count\n/,
  )
  const { stdout } = await at.run(['accept', 'read', '--declaration', path])
  expect(stdout).toMatch(/^Bash +accepted, under a name of hosts’ own tools$/m)
  expect(stdout).toMatch(/^bashful +accepted$/m)
  expect(await operator.call('declarations/accept', { server: 'read' })).toMatchObject({ borrowed })
  await at.client.call('servers/start', { server: 'seen' })
  const told: unknown[] = []
  const ended = new AbortController()
  for await (const { type, server, detail } of operator.events({ since: 0, signal: ended.signal })) {
    if (type === 'surface/accepted' && server === 'seen') told.push(detail['borrowed'])
    if (told.length > 0) break
  }
  expect(told).toEqual([borrowed])
  // Beside the host’s own it has another name.
  const shown = (await at.client.call('tools/list', { server: 'seen' })).tools.map(({ name }) => name)
  expect(shown).toEqual(expect.arrayContaining(['seen_Bash', 'seen_web-fetch']))
})
