// The control channel from the hostile side: whatever is malformed, cut or out of order ends both readers with 125, and nothing has run.
import { chownSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { frame } from '../../support/init-frames.ts'
import {
  closedFolder,
  ids,
  InitProcess,
  initOrders,
  inParallel,
  isRoot,
  launch,
  outcome,
  buildInit,
  outerOrders,
  shell,
} from '../../support/init-sandbox.ts'

const binary = buildInit()
const outer = (...frames: readonly Uint8Array[]): InitProcess =>
  new InitProcess(binary, ['outer']).send(...frames)

const raw = (type: string, length: number): Buffer => {
  const head = Buffer.from(`${type}\0\0\0\0`, 'latin1')
  head.writeUInt32LE(length, 1)
  return head
}

const idsFrame = frame('u', ids.uid, ids.gid)
const tool = frame('b', '/usr/bin/true')

describe('outer', () => {
  const malformed: Record<string, readonly Uint8Array[]> = {
    'an unknown type': [frame('?')],
    'a type of init': [frame('G', '/bin/true')],
    'a NUL type': [Buffer.alloc(5)],
    'a frame over 1 MiB': [raw('a', (1 << 20) + 1)],
    'a frame of 4 GiB': [raw('a', 0xffffffff)],
    'a string without NUL': [frame('a', Buffer.from('text'))],
    'an empty string payload': [frame('b', Buffer.alloc(0))],
    'two strings where one is due': [frame('b', '/usr/bin/true', '/usr/bin/false')],
    'ids too short': [frame('u', 1)],
    'ids too long': [frame('u', 1, 1, 1)],
    'ids twice': [idsFrame, idsFrame],
    'a tool twice': [tool, tool],
    'a relative tool': [frame('b', 'bin/true')],
    'exec with a payload': [idsFrame, tool, frame('x', 'now')],
    'exec without ids': [tool, frame('x')],
    'exec without a tool': [idsFrame, frame('x')],
    'a tool that is not there': [idsFrame, frame('b', '/nonexistent'), frame('x')],
    'a relative cgroup': [frame('c', 'cgroup.procs')],
    'a cgroup file that is neither cgroup.procs nor tasks': [frame('c', '/tmp/mytasks')],
    'a cgroup that is not there': [frame('c', '/nonexistent/cgroup.procs'), idsFrame, tool, frame('x')],
    '17 cgroups': Array.from({ length: 17 }, () => frame('c', '/a/cgroup.procs')),
    'uid 0': [frame('u', 0, ids.gid), tool, frame('x')],
    'gid 0': [frame('u', ids.uid, 0), tool, frame('x')],
    'uid -1': [frame('u', 0xffffffff, ids.gid), tool, frame('x')],
    'more than the arena': Array.from({ length: 9 }, () => frame('d', Buffer.alloc(1 << 20))),
    'too many arguments': [Buffer.concat(Array.from({ length: 8193 }, () => frame('a', '')))],
  }
  if (isRoot)
    Object.assign(malformed, {
      'a staging path that climbs': [frame('m', '/usr', '../x')],
      'a staging path with a slash': [frame('m', '/usr', 'a/b')],
      'a hidden staging path': [frame('m', '/usr', '.')],
      'an empty staging path': [frame('m', '/usr', '')],
      'a relative source': [frame('m', 'usr', '0')],
      'a source that is not there': [frame('m', '/nonexistent', '0'), idsFrame, tool, frame('x')],
      'a source behind a symlink': [frame('m', '/proc/self/root/usr', '0'), idsFrame, tool, frame('x')],
      'the same staging path twice': [
        frame('m', '/usr', '0'),
        frame('m', '/usr', '0'),
        idsFrame,
        tool,
        frame('x'),
      ],
    })
  else
    Object.assign(malformed, {
      'staging without root': [frame('m', '/usr', '0')],
      'ids of somebody else': [frame('u', ids.uid + 1, ids.gid), tool, frame('x')],
    })

  it.each(Object.entries(malformed))('refuses %s', async (_, frames) => {
    await using process = outer(...frames)
    const { code, diagnostics } = await outcome(process)
    expect({ code, diagnostics }).toEqual({
      code: 125,
      diagnostics: expect.stringMatching(/^sallyport-init: [^\n]+\n$/),
    })
  })

  it('ends when the supervisor does, wherever in the stream that is', async () => {
    const whole = Buffer.concat([
      idsFrame,
      tool,
      frame('a', '--x'),
      frame('d', Buffer.from('data')),
      frame('x'),
    ])
    await inParallel([...whole.keys()], async (length) => {
      await using process = outer(whole.subarray(0, length))
      process.control.end()
      expect((await process.ended).code, `cut after ${length} bytes`).toBe(125)
    })
    // The whole stream does what the cut ones must not.
    await using complete = outer(whole)
    expect((await complete.ended).code).toBe(0)
  })

  it('reads a stream that comes byte by byte', async () => {
    await using process = outer()
    for (const byte of Buffer.concat([idsFrame, tool, frame('x')])) process.control.write(Buffer.of(byte))
    expect((await process.ended).code).toBe(0)
  })
})

describe('init', () => {
  const program = frame('G', '/usr/bin/true')
  const base = [frame('r'), frame('g', 'true'), frame('w', '/tmp'), frame('o', 0, 100, 100)]
  const malformed: Record<string, readonly Uint8Array[]> = {
    'an unknown type before the report': [frame('?')],
    'a target after the report': [frame('r'), frame('t', '/usr')],
    'argv before the report': [frame('g', 'true')],
    'go before the report': [program],
    'a second report': [frame('r'), frame('r')],
    'a report with a payload': [frame('r', 'x')],
    'a relative target': [frame('t', 'usr')],
    'a target without NUL': [frame('t', Buffer.from('/usr'))],
    'an order for a running server': [frame('r'), frame('T')],
    'an order of outer': [frame('r'), idsFrame],
    'go without argv': [frame('r'), frame('w', '/tmp'), frame('o', 0, 1, 1), program],
    'go without cwd': [frame('r'), frame('g', 'true'), frame('o', 0, 1, 1), program],
    'go without options': [frame('r'), frame('g', 'true'), frame('w', '/tmp'), program],
    'cwd twice': [frame('r'), frame('w', '/tmp'), frame('w', '/tmp')],
    'options twice': [...base, frame('o', 0, 1, 1)],
    'an option that is not known': [frame('r'), frame('o', 2, 1, 1)],
    'short options': [frame('r'), frame('o', 0, 1)],
    'a relative program': [...base, frame('G', 'true')],
    'a variable without =': [...base, frame('e', 'NAME')],
    'a variable without a name': [...base, frame('e', '=value')],
    'a counter that climbs': [...base, frame('n', '../user/max_user_namespaces', 0n), program],
    'a counter that is not there': [...base, frame('n', 'max_nonsense', 0n), program],
    'a counter without a value': [...base, frame('n', 'max_user_namespaces')],
    'a file over another': [...base, frame('f', 0o600, '/usr/bin/env', Buffer.alloc(1)), program],
    'a file twice': [...base, frame('f', 0o600, '/tmp/a'), frame('f', 0o600, '/tmp/a'), program],
    'a relative file': [...base, frame('f', 0o600, 'a'), program],
    'a setuid file': [...base, frame('f', 0o4755, '/tmp/a'), program],
    'a file without a folder': [...base, frame('f', 0o600, '/tmp/no/a'), program],
    'a limit that is not known': [...base, frame('l', 99, 0n, 0n), program],
    'a limit raised beyond its own hard one': [...base, frame('l', 7, 8n, 4n), program],
    'a cwd that is not there': [frame('r'), frame('g', 'x'), frame('w', '/no'), frame('o', 0, 1, 1), program],
    'a frame over 1 MiB': [frame('r'), raw('e', (1 << 20) + 1)],
  }

  it.each(Object.entries(malformed))('refuses %s', async (_, frames) => {
    await using process = outer(...outerOrders(), ...frames)
    const { code, diagnostics, reports } = await outcome(process)
    expect({ code, diagnostics }).toEqual({
      code: 125,
      diagnostics: expect.stringMatching(/^sallyport-init: [^\n]+\n$/),
    })
    expect(reports.map(({ type }) => type)).not.toContain('S')
  })

  it('says which step failed on which object, over the channel too', async () => {
    await using process = outer(...outerOrders(), ...base, frame('f', 0o600, '/usr/x'), program)
    const { reports, diagnostics } = await outcome(process)
    const failed = reports.at(-1)
    expect(failed?.type).toBe('X')
    expect(failed?.payload.readUInt32LE(0)).toBe(30) // EROFS
    expect(failed?.payload.toString('utf8', 4)).toBe('file\0/usr/x\0')
    expect(diagnostics).toBe('sallyport-init: file: /usr/x: Read-only file system\n')
  })

  it('runs nothing when the supervisor ends before go, wherever in the stream that is', async () => {
    using folder = closedFolder()
    const more = { binds: { [folder.path]: '/workspace' } }
    if (isRoot) chownSync(folder.path, ids.uid, ids.gid)
    const orders = Buffer.concat([
      frame('t', '/usr'),
      ...initOrders(
        shell('touch /workspace/ran', {
          env: { A: 'b' },
          extra: [frame('f', 0o600, '/workspace/file', Buffer.from('x'))],
        }),
      ),
    ])
    await inParallel([...orders.keys()], async (length) => {
      await using process = outer(...outerOrders(more), orders.subarray(0, length))
      process.control.end()
      expect((await process.ended).code, `cut after ${length} bytes`).toBe(125)
    })
    expect(readdirSync(folder.path)).toEqual([])
    // The whole stream does what the cut ones must not.
    await using complete = outer(...outerOrders(more), orders)
    expect((await complete.ended).code).toBe(0)
    expect(existsSync(join(folder.path, 'ran'))).toBe(true)
  })

  it('kills everything on a malformed order for a running server', async () => {
    await inParallel(
      [
        frame('?'),
        frame('K', 'x'),
        frame('s'),
        frame('s', 0),
        frame('s', 1000),
        frame('T', 1),
        raw('s', 1 << 20),
      ],
      async (order) => {
        await using sandbox = launch(shell('sleep 60'))
        await sandbox.report('S')
        sandbox.send(order)
        expect((await sandbox.ended).code).toBe(125)
      },
    )
  })

  it('refuses to run anywhere but as pid 1', async () => {
    await using process = new InitProcess(binary, ['init'])
    expect(await outcome(process)).toMatchObject({
      code: 125,
      diagnostics: expect.stringContaining('pid: not 1'),
    })
  })

  it('refuses to be root, in a namespace of its own too', async () => {
    const unshare = ['--user', '--map-root-user', '--pid', '--fork', binary, 'init']
    await using process = new InitProcess('/usr/bin/unshare', unshare)
    expect(await outcome(process)).toMatchObject({
      code: 125,
      diagnostics: expect.stringContaining('never runs as root'),
    })
  })

  it('refuses a sandbox tool that leaves it no way to empty the bounding set', async () => {
    await using process = outer(
      ...outerOrders({ capabilities: ['CAP_SYS_RESOURCE'] }),
      ...initOrders(shell('true')),
    )
    expect(await outcome(process)).toMatchObject({
      code: 125,
      diagnostics: expect.stringContaining('CAP_SETPCAP'),
    })
  })
})
