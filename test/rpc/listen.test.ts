// The sockets themselves: their modes, who is let in, how many, and what is replaced.
import { chmod, lstat, mkdir, readdir, rename, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { silent } from '../../src/lib/logger.ts'
import type { Call, Service } from '../../src/rpc/answering.ts'
import { dial } from '../../src/rpc/dial.ts'
import { listen } from '../../src/rpc/listen.ts'
import type { ListenOptions } from '../../src/rpc/listen.ts'
import { PeerQuery } from '../../src/rpc/peer.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { rawPeer } from '../support/control.ts'
import { eventually } from '../support/eventually.ts'
import { tempDir } from '../support/temp-dir.ts'
import { isRoot, nobody, nodeAs } from '../support/user.ts'

const peers = new PeerQuery(await findInitBinary())
afterAll(() => peers[Symbol.dispose]())
const whoAmI: Service = {
  call: async (_method: string, _params: unknown, call: Call) => call.principal,
  attach: async () => {
    throw new Error('nothing to attach to')
  },
}
const options = (path: string, more: Partial<ListenOptions> = {}): ListenOptions => ({
  path,
  gid: null,
  service: whoAmI,
  peers,
  admits: () => true,
  log: silent,
  ...more,
})
const mode = async (path: string): Promise<string> => ((await lstat(path)).mode & 0o7777).toString(8)

describe('a socket', () => {
  it('is 0600 and knows who calls by the kernel, not by what they say', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    await using _listener = await listen(options(path))
    expect(await mode(path)).toBe('600')
    await using caller = await dial(path)
    expect(await caller.call('who', {})).toEqual({
      kind: 'uid',
      id: String(process.getuid?.()),
      attributes: { uid: process.getuid?.(), gid: process.getgid?.(), pid: process.pid },
    })
  })

  it('gets its mode without a umask, which holds for whatever else is made in that moment', async () => {
    await using folder = await tempDir()
    const before = process.umask(0)
    try {
      for (let round = 0; round < 20; round++) {
        const path = join(folder.path, `s${round}`)
        const listening = listen(options(path))
        const folders = Array.from({ length: 256 }, (_, index) => join(folder.path, `${round}-${index}`))
        const made = folders.map((each) => mkdir(each, { mode: 0o711 }))
        await using _listener = await listening
        await Promise.all(made)
        expect(await mode(path)).toBe('600')
        expect(new Set(await Promise.all(folders.map(mode)))).toEqual(new Set(['711']))
      }
    } finally {
      process.umask(before)
    }
  })

  it('is 0660 where a group is admitted', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    await using _listener = await listen(options(path, { gid: process.getgid?.() ?? 0 }))
    expect(await mode(path)).toBe('660')
  })

  it('replaces what a dead daemon left, and removes its own file at the end', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    const dead = createServer()
    await new Promise<void>((resolve) => dead.listen(`${path}.old`, resolve))
    await rename(`${path}.old`, path) // so that closing can't remove it
    dead.close()
    const listener = await listen(options(path))
    await using caller = await dial(path)
    expect(await caller.call('who', {})).toBeTruthy()
    await listener[Symbol.asyncDispose]()
    await expect(lstat(path)).rejects.toThrow('ENOENT')
  })

  it('leaves alone what came in its place', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    const first = await listen(options(path))
    expect(first.isInPlace).toBe(true)
    await using second = await listen(options(path)) // as where two have the lock
    expect([first.isInPlace, second.isInPlace]).toEqual([false, true])
    await first[Symbol.asyncDispose]()
    await using caller = await dial(path)
    expect(await caller.call('who', {})).toBeTruthy()
    expect(await readdir(folder.path)).toEqual(['s'])
  })

  it('never replaces what is not a socket', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    await writeFile(path, 'mine')
    await expect(listen(options(path))).rejects.toMatchObject({ code: 'ERR_RUNTIME_UNSAFE' })
    await mkdir(join(folder.path, 'd'))
    await expect(listen(options(join(folder.path, 'd')))).rejects.toMatchObject({
      code: 'ERR_RUNTIME_UNSAFE',
    })
  })

  it.runIf(isRoot)(
    'answers ERR_NOT_AUTHORISED to a uid that it does not admit, and reads nothing of it',
    async () => {
      await using folder = await tempDir()
      const path = join(folder.path, 's')
      let calls = 0
      const service = { ...whoAmI, call: async () => (calls += 1) }
      await using _listener = await listen(options(path, { service, admits: ({ uid }) => uid === 0 }))
      await chmod(folder.path, 0o755)
      await chmod(path, 0o666)
      const said = await nodeAs(
        nobody,
        `import { connect } from 'node:net'
       const s = connect(${JSON.stringify(path)})
       s.write('{"jsonrpc":"2.0","id":1,"method":"who"}\\n')
       s.pipe(process.stdout)`,
      )
      expect(JSON.parse(said)).toMatchObject({
        id: null,
        error: { data: { code: 'ERR_NOT_AUTHORISED', uid: nobody } },
      })
      expect(calls).toBe(0)
    },
  )

  it('refuses everybody where the kernel can not be asked', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    await using _listener = await listen(
      options(path, { peers: new PeerQuery('/nonexistent/sallyport-init') }),
    )
    await using peer = await rawPeer(path)
    expect(await peer.line()).toContain('ERR_NOT_AUTHORISED')
    expect(await peer.line()).toBeNull()
  })

  it('answers ERR_BUSY beyond the connections of one uid, and serves again when one closes', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    await using _listener = await listen(options(path, { limits: { connectionsPerUid: 2 } }))
    await using first = await dial(path)
    await using second = await dial(path)
    await Promise.all([first.call('who', {}), second.call('who', {})])
    await using third = await dial(path)
    await expect(third.call('who', {})).rejects.toMatchObject({ code: 'ERR_BUSY' })
    await first[Symbol.asyncDispose]()
    await eventually(async () => {
      await using next = await dial(path)
      return (await next.call('who', {})) !== null
    })
  })

  it('tells each that is refused why, however many come and stay, and keeps nobody else out by them', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    const told: object[] = []
    const log = { ...silent, warn: (detail: object) => void told.push(detail) }
    await using _listener = await listen(
      options(path, { log, limits: { connections: 64, connectionsPerUid: 2 } }),
    )
    await using first = await dial(path)
    await using second = await dial(path)
    await Promise.all([first.call('who', {}), second.call('who', {})])
    for (let peers = 0; peers < 200; peers++) {
      const peer = await rawPeer(path)
      expect(await peer.line()).toContain('ERR_BUSY')
    }
    expect(told).toMatchObject([{ code: 'ERR_BUSY', times: 1 }])
  })

  it('survives a flood of connections that are closed at once', async () => {
    await using folder = await tempDir()
    const path = join(folder.path, 's')
    await using _listener = await listen(options(path, { limits: { connections: 50 } }))
    const flood = await Promise.allSettled(Array.from({ length: 300 }, () => rawPeer(path)))
    for (const peer of flood) if (peer.status === 'fulfilled') peer.value.socket.destroy()
    await eventually(async () => {
      await using caller = await dial(path)
      return (await caller.call('who', {})) !== null
    })
  })
})
