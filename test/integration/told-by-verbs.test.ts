// What verbs say of an output that is full, of a number that they do not take, and of a list with nothing in it.
import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { attached } from '../support/attached.ts'
import { eventually } from '../support/eventually.ts'
import { configOf, daemon, fixture, main, place, type Place } from '../support/daemon.ts'

/** Runs a verb whose stdout takes nothing. */
function intoFull(
  { env, folder }: Place,
  line: string,
): { readonly status: number | null; readonly stderr: string } {
  const full = openSync('/dev/full', 'w')
  try {
    return spawnSync(process.execPath, [main, ...line.split(' ')], {
      env,
      cwd: folder,
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    })
  } finally {
    closeSync(full)
  }
}

test('an output that is full is told, and no anchor of an export that nobody has', async () => {
  await using at = await daemon()
  for (const line of ['profile list', 'ps', 'ps --json', 'audit tail', 'audit export']) {
    const { status, stderr } = intoFull(at, line)
    expect({ line, status, stderr }).toEqual({
      line,
      status: 1,
      stderr: expect.stringMatching(
        /^sallyport: stdout: cannot be written \(ENOSPC\); .* \(ERR_SHORTAGE\)\n$/,
      ),
    })
  }
})

test('what a verb has done is told where its answer finds no room', async () => {
  const servers = { plain: fixture('echo'), asked: fixture('echo') }
  const rules = [
    { permission: 'mcp:asked:*', action: 'ask' },
    { permission: 'mcp:*:*', action: 'allow' },
  ]
  await using at = await daemon(configOf(servers, { rules }))
  const watcher = at.start(['approvals', '--watch', '--json'])
  const asked = async (nth: number): Promise<string> => {
    void at.client.call('tools/call', { server: 'asked', tool: 'echo', arguments: {} }).catch(() => undefined)
    return eventually(async () => (await at.client.call('approvals/list', {})).pending[nth]?.id)
  }
  await eventually(async () => (await at.client.call('approvals/list', {})).listeners > 0)
  const entry = fixture('echo', { version: '1', justification: 'a try', tags: [] })
  await writeFile(join(at.folder, 'entry.json'), JSON.stringify(entry), { mode: 0o600 })
  for (const [line, told] of [
    ['add one --entry entry.json --json', /one 1 is registered/],
    ['remove one --json', /one is removed; 0 instances stopped, 0 permits ended/],
    [`approve ${await asked(0)} --json`, /approved, once/],
    [`deny ${await asked(1)} --json`, /denied/],
    ['hold plain --name h --json', /held as h/],
    ['release h --json', /h: ended the hold/],
    ['hold plain --stop --json', /plain is stopped and quarantined/],
    ['release plain --json', /plain: ended the quarantine/],
    ['start plain --json', /plain is ready/],
    ['call plain echo', /plain echo was called \(c-[\w-]+\)/],
    ['call plain echo --json', /plain echo was called \(c-[\w-]+\)/],
    ['trust reset plain', /trust in 3 tools of plain begins anew/],
    ['trust reset plain echo --json', /trust in 1 tool of plain begins anew/],
    ['accept plain', /of plain 3 tools are accepted/],
    ['permits revoke --server plain --json', /0 permits revoked/],
    ['stop plain --json', /plain is stopped: 1 instance ended/],
    ['reload --json', /reloaded; 2 servers are as before/],
  ] as const) {
    const { status, stderr } = intoFull(at, line)
    expect({ line, status, stderr }).toEqual({
      line,
      status: 1,
      stderr: expect.stringMatching(
        new RegExp(
          `^sallyport: stdout: cannot be written \\(ENOSPC\\), yet this is done: ${told.source}.* \\(ERR_SHORTAGE\\)\n$`,
        ),
      ),
    })
  }
  watcher.kill()
})

test('a verb whose stderr takes nothing ends with the status that it has', async () => {
  await using at = await daemon()
  const full = openSync('/dev/full', 'w')
  try {
    for (const [line, status] of [
      ['nonsense', 7],
      ['show nope', 8],
      ['approve a-nope', 8],
      ['permits', 0],
      ['ps --runtime nope', 5],
    ] as const) {
      const ended = spawnSync(process.execPath, [main, ...line.split(' ')], {
        env: at.env,
        cwd: at.folder,
        stdio: ['ignore', 'pipe', full],
      })
      expect({ line, status: ended.status }).toEqual({ line, status })
    }
  } finally {
    closeSync(full)
  }
})

test.each([
  ['audit tail -n 0', '--lines: got "0", expected a whole number from 1 to 1000'],
  ['audit tail -n 1001', '--lines: got "1001", expected a whole number from 1 to 1000'],
  ['audit show nope', 'audit show: got nope, expected the number of a record, or the id of a call'],
])('sallyport %s is refused with what is expected', async (line, words) => {
  await using at = await place()
  const { status, stderr, stdout } = await at.run(line.split(' '))
  expect({ status, stdout }).toEqual({ status: 7, stdout: '' })
  expect(stderr).toContain(words)
})

test('where no server is connected the list of tools says what connects one', async () => {
  await using at = await daemon(configOf({ plain: fixture('echo') }))
  const { stderr } = await at.run(['tools', 'plain'])
  const [, verb = 'none'] = /; sallyport (\w+) plain connects it$/m.exec(stderr) ?? []
  expect((await at.run([verb, 'plain'])).status).toBe(0)
  expect((await at.run(['tools', 'plain'])).stdout).toContain('echo')
})

test('of a server that may not run, or shows no tool, the list says so, and not to start it', async () => {
  const shut = fixture('echo', { trust: 'sandboxed' }) // its entry exposes no tool
  const servers = { halted: fixture('echo'), off: fixture('echo', { enabled: false }), shut }
  await using at = await daemon(configOf(servers))
  await at.client.call('servers/quarantine', { server: 'halted', reason: 'a look' })
  await at.client.call('servers/start', { server: 'shut' })
  for (const [server, told] of [
    [
      'halted',
      'halted is not connected: it is quarantined: a look; an operator lets it run again with sallyport release halted; see sallyport show halted',
    ],
    ['off', 'off is not connected: server off is disabled by its entry; see sallyport show off'],
    ['shut', 'shut lists none, or its entry exposes none of them'],
  ] as const)
    expect(await at.run(['tools', server])).toMatchObject({ status: 0, stderr: `no tools: ${told}\n` })
})

test('a reset of what has no record says whether it is the server or the tool that nobody knows', async () => {
  await using at = await daemon(configOf({ plain: fixture('echo'), fresh: fixture('echo') }))
  await at.client.call('declarations/accept', { server: 'plain' })
  for (const [line, told] of [
    ['plian', 'no server is called "plian"; did you mean plain?; see sallyport ps (ERR_SERVER_NOT_FOUND)'],
    ['nope echo', 'no server is called "nope"; see sallyport ps (ERR_SERVER_NOT_FOUND)'],
    [
      'plain ecoh',
      'nothing is known of a tool ecoh of plain; did you mean echo?; see sallyport trust (ERR_TOOL_NOT_FOUND)',
    ],
    ['fresh', 'nothing is known of any tool of fresh; see sallyport trust (ERR_TOOL_NOT_FOUND)'],
  ] as const)
    expect(await at.run(['trust', 'reset', ...line.split(' ')])).toMatchObject({
      status: 8,
      stderr: `sallyport: ${told}\n`,
    })
})

test('events behind one that is yet to come are refused: their numbers may be those of an earlier start', async () => {
  await using at = await daemon()
  const { status, stderr } = await at.run(['events', '--since', '1000000'])
  expect(status).toBe(7)
  expect(stderr).toMatch(
    /params\.since: got 1000000, expected at most \d+, the latest event; each start of the daemon numbers them anew/,
  )
})

test('of a server that only a host is connected to, the list says what connects it to whoever asks, too', async () => {
  await using at = await daemon(configOf({ plain: fixture('echo') }))
  await using _host = await attached(at, 'plain')
  await eventually(
    async () => (await at.client.call('servers/get', { server: 'plain' })).state === 'connected',
  )
  expect((await at.run(['tools', 'plain'])).stderr).toBe(
    'no tools: a server that is not connected lists none; sallyport start plain connects it\n',
  )
  expect((await at.run(['start', 'plain'])).status).toBe(0)
  expect((await at.run(['tools', 'plain'])).stdout).toContain('echo')
})
