// The verbs that ask a daemon: what they print, and the status that they end with.
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { configOf, daemon, fixture, place } from '../support/daemon.ts'
import type { Ran, TestDaemon } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

let at: TestDaemon
const run = (...args: readonly string[]): Promise<Ran> => at.run(args)
const statusOf = async (...args: readonly string[]): Promise<string> => {
  const { status, stderr } = await run(...args)
  return `${status} ${/\((ERR_\w+)\)\n$/.exec(stderr)?.[1] ?? stderr}`
}

beforeAll(async () => {
  at = await daemon(
    configOf(
      {
        echo: fixture('echo', { env: { INNER_WORD: 'hush' }, justification: 'to test' }),
        slow: fixture('slow'),
        patient: fixture('slow'),
        noisy: fixture('flood-stderr'),
        crash: fixture('crash-on-call'),
        mirror: fixture('mirror'),
        off: fixture('echo', { enabled: false }),
        asks: fixture('echo'),
      },
      {
        rules: [
          { permission: 'mcp:echo:fail', action: 'deny' },
          { permission: 'mcp:asks:*', action: 'ask' },
          { permission: 'mcp:*:*', action: 'allow' },
        ],
      },
    ),
  )
})
afterAll(() => at[Symbol.asyncDispose]())

describe('sallyport call', () => {
  it('prints the text of the answer', async () => {
    expect(await run('call', 'echo', 'echo', '--args', '{"a":1}', '-a', 'b=two', 'c=[3]')).toEqual({
      status: 0,
      stdout: '{"a":1,"b":"two","c":[3]}\n',
      stderr: '',
    })
  })

  it('sends and prints numbers as they were written', async () => {
    const args = '{"big":12345678901234567890,\n "float":1.0, "zero":-0, "ä":"ü"}'
    const { stdout, stderr } = await run('call', 'mirror', 'echo', '--args', args, '-a', 'n=1.50', '--json')
    expect(stderr).toBe('')
    expect(stdout).toContain('"mirror":{"big":12345678901234567890,"float":1.0,"zero":-0,"ä":"ü","n":1.50}')
  })

  it('prints what went wrong as JSON, too', async () => {
    const { status, stdout, stderr } = await run('call', 'nobody', 'echo', '--json')
    expect(status).toBe(8)
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: 1050, data: { code: 'ERR_SERVER_NOT_FOUND' } },
    })
    expect(stderr).toContain('(ERR_SERVER_NOT_FOUND)')
  })

  it('tells a person why a server is unavailable', async () => {
    expect((await run('call', 'crash', 'crash')).stderr).toMatch(
      /crash is unavailable: it .+ \(ERR_SERVER_UNAVAILABLE\)/,
    )
  })

  it('says whose word it is where a tool failed', async () => {
    const { status, stdout, stderr } = await run('call', 'echo', 'error')
    expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: '', stderr: 'echo: as asked (-32050)\n' })
  })

  it('prints the RPC’s own shape with --json', async () => {
    const { stdout } = await run('call', 'echo', 'echo', '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      call_id: expect.stringMatching(/^c-/),
      type: 'output',
      data: { content: [{ type: 'text', text: '{}' }] },
      metadata: { truncated: false, identity: expect.stringContaining('echo/echo@') },
    })
  })

  it.each([
    [['call', 'echo', 'nothing'], '8 ERR_TOOL_NOT_FOUND'],
    [['call', 'nobody', 'echo'], '8 ERR_SERVER_NOT_FOUND'],
    [['call', 'off', 'echo'], '8 ERR_SERVER_DISABLED'],
    [['call', 'echo', 'fail'], '2 ERR_POLICY_DENIED'],
    [['call', 'asks', 'echo'], '2 ERR_APPROVAL_UNAVAILABLE'],
    [['call', 'slow', 'wait', '-a', 'ms=60000', '--timeout', '300'], '1 ERR_CALL_TIMEOUT'],
    [['call', 'echo', 'echo', '--args', '[1]'], '7 ERR_USAGE'],
    [['call', 'echo', 'echo', '-a', 'novalue'], '7 ERR_USAGE'],
    [['call', 'echo', 'echo', '--args', '{"a":1}', '-a', 'a=2'], '7 ERR_USAGE'],
    [['call', 'echo', 'echo', '--timeout', 'soon'], '7 ERR_USAGE'],
    [['call', 'echo'], '7 ERR_USAGE'],
    [['call', 'a b', 'echo'], '7 ERR_INVALID_PARAMS'],
    [['nonsense'], '7 ERR_USAGE'],
    [['ps', '--nonsense'], '7 ERR_USAGE'],
    [['ps', 'argument'], '7 ERR_USAGE'],
    [['show', 'nobody'], '8 ERR_SERVER_NOT_FOUND'],
    [['logs', 'nobody'], '8 ERR_SERVER_NOT_FOUND'],
    [['run', '--egress', 'example.org', '--', 'node'], '7 ERR_USAGE'],
    [['run', '--egress', 'example.org:443', '--', 'node'], '7 ERR_PROFILE_EXCEEDED'],
  ])('%j ends with %s', async (args, outcome) => {
    expect(await statusOf(...args)).toBe(outcome)
  })

  it('ends with 1 and says why when the server dies of the call', async () => {
    const { status, stderr } = await run('call', 'crash', 'crash')
    expect(status).toBe(1)
    expect(stderr).toMatch(/ERR_SERVER_UNAVAILABLE|ended|exited/)
  })

  it('that is interrupted cancels the call at the server, with status 3', async () => {
    const child = at.start(['call', 'patient', 'wait', '-a', 'ms=60000'])
    // Its instance is started by the call alone, so the call is there when it is ready.
    await eventually(async () => {
      const { instances } = await at.client.call('servers/get', { server: 'patient' })
      return instances.some(({ state }) => state === 'ready')
    })
    const ended = once(child, 'exit')
    child.kill('SIGINT')
    expect(await ended).toEqual([3, null])
    await eventually(async () => (await run('logs', 'patient')).stdout.includes('cancelled'))
  })

  it('fails with 5 where no daemon runs, and says how to start one', async () => {
    await using empty = await place()
    const { status, stderr } = await empty.run(['ps'])
    expect(status).toBe(5)
    expect(stderr).toContain('sallyport serve')
  })
})

describe('the verbs that read', () => {
  it('ps lists every server with its state, its reason and no secret', async () => {
    const { stdout, status } = await run('ps')
    expect(status).toBe(0)
    expect(stdout.split('\n')[0]).toMatch(/^SERVER +STATE +INSTANCE +PID +UP +RESTARTS +PROFILE +TRUST +WHY$/)
    expect(stdout).toMatch(/^off +disabled/m)
    expect(stdout).not.toMatch(/\x1b|hush/)
    expect(JSON.parse((await run('ps', '--json')).stdout).servers).toHaveLength(8)
  })

  it('tools shows what policy says of each', async () => {
    await at.client.call('servers/start', { server: 'echo' })
    const { stdout } = await run('tools', 'echo')
    expect(stdout).toMatch(/^echo +echo +allow +Returns its arguments\.$/m)
    expect(stdout).not.toMatch(/^echo +fail/m)
    const { tools } = JSON.parse((await run('tools', 'echo', '--json')).stdout)
    expect(tools.map(({ name }: { name: string }) => name)).toContain('echo_echo')
  })

  it('show names what runs, and hides the values of its own variables', async () => {
    const { stdout } = await run('show', 'echo')
    expect(stdout).toMatch(/^sha256 +[0-9a-f]{64}$/m)
    expect(stdout).toMatch(/^package +sha256:[0-9a-f]{64}$/m)
    expect(stdout).toContain('INNER_WORD=')
    expect(stdout).not.toContain('hush')
    expect((await run('show', 'echo', '--json')).stdout).not.toContain('hush')
  })

  it('test goes through the steps of a launch, and leaves nothing running', async () => {
    const { stdout, status } = await run('test', 'echo')
    expect(status).toBe(0)
    expect(stdout).toMatch(/^launch +ok.*\n(.*ok.*\n)+$/m)
  })

  it('logs shows the end of what a server wrote, however much it was', async () => {
    await at.client.call('servers/start', { server: 'noisy' })
    const { stdout, stderr } = await run('logs', 'noisy', '-n', '3')
    expect(stdout.trimEnd().split('\n')).toHaveLength(3)
    await eventually(async () => (await run('logs', 'noisy', '-n', '1')).stderr.includes('no longer kept'))
    expect(stderr).toMatch(/^$|no longer kept/)
    await at.client.call('servers/stop', { server: 'noisy' })
  })

  it('logs -f and events go on until they are interrupted', async () => {
    const events = at.start(['events', '--since', '0', '--json'])
    const [first] = await once(events.stdout ?? events, 'data')
    expect(JSON.parse(String(first).split('\n')[0] ?? '')).toMatchObject({ seq: 1, type: expect.any(String) })
    const ended = once(events, 'exit')
    events.kill('SIGINT')
    expect((await ended)[0]).toBe(3)
    const logs = at.start(['logs', 'slow', '-f'])
    await at.client.call('servers/start', { server: 'slow' })
    const logsEnded = once(logs, 'exit')
    await eventually(() => logs.exitCode !== null || logs.kill('SIGINT'))
    expect([0, 3, null]).toContain((await logsEnded)[0])
  })

  it('doctor says what holds each limit, and that a daemon runs', async () => {
    const { stdout, status } = await run('doctor')
    expect(status).toBe(0)
    expect(stdout).toMatch(/^sandbox +ok/m)
    expect(stdout).toContain(`pid ${at.process.pid}`)
    expect(JSON.parse((await run('doctor', '--json')).stdout)).toMatchObject({
      daemon: { pid: at.process.pid },
    })
  })

  it('help and version are quick and clean', async () => {
    expect((await run('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    const bare = await run()
    expect(bare.status).toBe(0)
    expect(bare.stdout).toContain('Commands:')
    expect((await run('ps', '--help')).stdout).toContain('--json')
  })
})
