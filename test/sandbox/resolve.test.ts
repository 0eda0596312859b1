// Settings, profile and registration become one frozen spec, or a refusal that says what to do.
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Registrations } from '../../src/sandbox/registrations.ts'
import type { PackageSettings } from '../../src/schema/settings.ts'
import { planOf, run } from '../support/plan.ts'
import { expectRefusal } from '../support/refusal.ts'
import { allowed, resolve, serverOf, settingsOf, trust } from '../support/settings.ts'
import { tempDir } from '../support/temp-dir.ts'

/** A server of one script, and a folder to work in. */
const arrange = async () => {
  const folder = await tempDir()
  const root = realpathSync(folder.path)
  const at = (...names: string[]): string => join(root, ...names)
  mkdirSync(at('app/dist'), { recursive: true })
  mkdirSync(at('work'))
  writeFileSync(at('app/dist/index.js'), 'console.log(process.argv.slice(2).join())\n')
  const code: PackageSettings = { source: at('app'), target: '/app', with: [], digest: null }
  const server = { command: 'sh', args: ['/app/dist/index.js', 'a'], package: code }
  return { at, code, server, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

describe('a spec', () => {
  test('is frozen to its depth', async () => {
    const { spec } = await resolve()
    const parts: unknown[] = [spec]
    for (let part = parts.pop(); part !== undefined; part = parts.pop())
      if (typeof part === 'object' && part !== null) {
        expect(Object.isFrozen(part)).toBe(true)
        parts.push(...(Object.values(part) as unknown[]))
      }
  })

  test('starts the program under the name that it was found by, with its options, script and arguments', async () => {
    await using place = await arrange()
    const { spec } = await resolve({
      server: { ...place.server, command: 'node' },
      settings: { interpreterOptions: { node: ['--max-old-space-size=64'] } },
    })
    expect(spec.program.argv).toEqual(['node', '--max-old-space-size=64', '/app/dist/index.js', 'a'])
    expect(spec.program.path).toBe('/sallyport/bin/node')
    expect(spec.cwd).toBe('/home/user')
    const mounts = spec.mounts.filter(({ target }) => target !== '/usr')
    expect(await run(await planOf([], { spec: { ...spec, mounts } }))).toMatchObject({
      stdout: 'a\n',
      stderr: '',
    })
  })

  test('starts a script by its interpreter, as the kernel would, options of a caller excluded', async () => {
    await using place = await arrange()
    writeFileSync(place.at('tool'), '#!/bin/sh -e\necho "$0 $1"\n', { mode: 0o755 })
    const { spec } = await resolve({
      server: { command: 'tool', args: ['-c'] },
      settings: { allowedCommands: [allowed('tool', place.at('tool'))] },
    })
    expect(spec.program).toEqual({ path: '/usr/bin/dash', argv: ['sh', '-e', '/sallyport/bin/tool', '-c'] })
    const mounts = spec.mounts.filter(({ target }) => target !== '/usr')
    const { stdout } = await run(await planOf([], { spec: { ...spec, mounts } }))
    expect(stdout).toBe('/sallyport/bin/tool -c\n')
  })

  test('returns what was let through beside it, for the record', async () => {
    const { overrides } = await resolve({
      server: { env: { NODE_OPTIONS: '--x' }, envOverride: { NODE_OPTIONS: 'a reason' } },
    })
    expect(overrides).toMatchObject([{ name: 'NODE_OPTIONS', reason: 'a reason' }])
  })

  test('is refused where it asks for what can’t be enforced', async () => {
    const refuse = (request: Parameters<typeof resolve>[0], ...words: string[]) =>
      expectRefusal(() => resolve(request), 'ERR_SANDBOX_UNENFORCEABLE', 'probe', ...words)
    await refuse({ server: { unenforceable: ['egress', 'credentials'] } }, 'egress, credentials')
  })

  test('works in a folder of the sandbox alone', async () => {
    await using place = await arrange()
    const mounts = [
      { source: place.at('work'), target: '/workspace', access: 'read' as const, reason: 'a test' },
    ]
    for (const cwd of ['/workspace', '/workspace/x', '/tmp', '/home/user', '/usr/lib'])
      expect((await resolve({ server: { cwd, mounts } })).spec.cwd).toBe(cwd)
    for (const cwd of ['/', '/root', '/workspace/../etc', 'workspace', '', '/workspace2', '/proc/1/root'])
      await expectRefusal(() => resolve({ server: { cwd, mounts } }), 'ERR_MOUNT_REFUSED', 'cwd')
  })
})

describe('the user', () => {
  const ids = (request: Parameters<typeof resolve>[0]) =>
    resolve(request).then(({ spec: { hostUid, hostGid } }) => [hostUid, hostGid])

  test('of a daemon that is not root is its own, and no other', async () => {
    const facts = { uid: 1234, gid: 1235 }
    expect(await ids({ facts })).toEqual([1234, 1235])
    expect(await ids({ facts, server: { runAs: 1234 } })).toEqual([1234, 1235])
    await expectRefusal(
      () => ids({ facts, server: { runAs: 1236 } }),
      'ERR_SANDBOX_UNENFORCEABLE',
      'run_as 1236',
    )
  })

  test('of a root daemon is never root, and one of its own for each sandbox', async () => {
    const facts = { uid: 0, gid: 0 }
    const [first, second] = [await ids({ facts }), await ids({ facts })]
    for (const [uid = 0, gid] of [first, second]) {
      expect(uid).toBeGreaterThanOrEqual(1_900_000_000)
      expect(uid).toBeLessThan(1_900_000_000 + 2 ** 24)
      expect(gid).toBe(uid)
    }
    expect(first).not.toEqual(second)
    expect(await ids({ facts, server: { runAs: 4321 } })).toEqual([4321, 4321])
    await expectRefusal(() => ids({ facts, server: { runAs: 0 } }), 'ERR_SANDBOX_UNENFORCEABLE', 'root')
  })

  test('of a root daemon that is to be an account has the group of that, and nobody else’s', async () => {
    const facts = { uid: 0, gid: 0, groupOf: (uid: number) => (uid === 42 ? 65_534 : null) }
    expect(await ids({ facts, server: { runAs: 42 } })).toEqual([42, 65_534])
    await expectRefusal(
      () => ids({ facts, server: { runAs: 27 } }),
      'ERR_SANDBOX_UNENFORCEABLE',
      'the group of that number is of others',
    )
  })
})

describe('a script', () => {
  test.each([
    '/dev/stdin',
    '/dev/fd/0',
    '/proc/self/fd/0',
    '/proc/1/root/x',
    '/tmp/x.js',
    '/home/user/x.js',
    '/x.js',
    '/etc/passwd',
    '/',
  ])('%s is in no mount and refused', async (path) => {
    await using place = await arrange()
    await expectRefusal(
      () => resolve({ server: { ...place.server, args: [path] } }),
      'ERR_ARGUMENT_REFUSED',
      path,
      'no mount',
    )
  })

  test('in a writable mount is refused, by any way', async () => {
    await using place = await arrange()
    writeFileSync(place.at('work/evil.js'), '')
    const mounts = [
      { source: place.at('work'), target: '/workspace', access: 'write' as const, reason: 'a test' },
    ]
    const facts = { uid: process.getuid?.() || 1, gid: process.getgid?.() || 1 }
    const start = (script: string) => resolve({ server: { ...place.server, mounts, args: [script] }, facts })
    await expectRefusal(() => start('/workspace/evil.js'), 'ERR_ARGUMENT_REFUSED', 'writable')
    await start('/app/dist/index.js')
  })

  test('that is missing, a folder, or a link to elsewhere is refused', async () => {
    await using place = await arrange()
    const folder = place.at('granted')
    mkdirSync(folder)
    symlinkSync('/dev/stdin', join(folder, 'stdin.js'))
    symlinkSync('/etc/hostname', join(folder, 'host.js'))
    symlinkSync('../app/dist/index.js', join(folder, 'fine.js'))
    const mounts = [{ source: folder, target: '/granted', access: 'read' as const, reason: 'a test' }]
    const start = (script: string) => resolve({ server: { ...place.server, mounts, args: [script] } })
    await expectRefusal(() => start('/app/dist/gone.js'), 'ERR_ARGUMENT_REFUSED', 'does not exist')
    await expectRefusal(() => start('/app/dist'), 'ERR_ARGUMENT_REFUSED', 'regular file')
    await expectRefusal(() => start('/app'), 'ERR_ARGUMENT_REFUSED', 'regular file')
    await expectRefusal(() => start('/granted/stdin.js'), 'ERR_ARGUMENT_REFUSED', '/granted/stdin.js')
    await expectRefusal(() => start('/granted/host.js'), 'ERR_ARGUMENT_REFUSED', 'outside')
    await start('/granted/fine.js')
  })
})

describe('a registration', () => {
  test('of an edited script is refused at the next launch, until it is as it was', async () => {
    await using place = await arrange()
    const server = serverOf(place.server)
    const registrations = new Registrations(settingsOf(), trust)
    const first = await registrations.verified(server)
    expect((await registrations.verified(server)).package?.digest).toBe(first.package?.digest)
    appendFileSync(place.at('app/dist/index.js'), '// evil\n')
    for (let launch = 0; launch < 2; launch++)
      await expectRefusal(() => registrations.verified(server), 'ERR_PACKAGE_CHANGED', 'dist/index.js')
    writeFileSync(place.at('app/dist/index.js'), 'console.log(process.argv.slice(2).join())\n')
    expect((await registrations.verified(server)).package?.digest).toBe(first.package?.digest)
    // Who loads the config again registers what is there then.
    appendFileSync(place.at('app/dist/index.js'), '// new version\n')
    const reloaded = await new Registrations(settingsOf(), trust).verified(server)
    expect(reloaded.package?.digest).not.toBe(first.package?.digest)
  })

  test('that failed is tried again', async () => {
    await using place = await arrange()
    const registrations = new Registrations(settingsOf(), trust)
    const server = serverOf(place.server)
    rmSync(place.at('app'), { recursive: true })
    await expectRefusal(() => registrations.verified(server), 'ERR_PACKAGE_UNSAFE')
    mkdirSync(place.at('app/dist'), { recursive: true })
    await expectRefusal(() => registrations.verified(server), 'ERR_ARGUMENT_REFUSED')
    writeFileSync(place.at('app/dist/index.js'), '')
    await registrations.verified(server)
  })

  test('is another one where the same name has another command or package', async () => {
    await using place = await arrange()
    const registrations = new Registrations(settingsOf(), trust)
    const one = await registrations.verified(serverOf(place.server))
    const other = await registrations.verified(
      serverOf({ ...place.server, command: 'cat', args: [], package: null }),
    )
    expect([one.command.name, other.command.name, other.package]).toEqual(['sh', 'cat', null])
  })

  test('refuses a bad argument before it reads any code', async () => {
    const registrations = new Registrations(settingsOf(), trust)
    const code = { source: '/that/is/not/there', target: '/app', with: [], digest: null }
    const server = serverOf({ command: 'node', args: ['-e', '1'], package: code })
    await expectRefusal(() => registrations.verified(server), 'ERR_ARGUMENT_REFUSED', '-e')
  })

  test('of a program that many servers share reads it once, and again where it is another file', async () => {
    await using place = await arrange()
    const path = place.at('tool')
    writeFileSync(path, Buffer.alloc(1 << 24, '#'), { mode: 0o755 })
    const allowedCommands = [{ name: 'tool', path, interpreter: null }]
    const registrations = new Registrations({ ...settingsOf(), allowedCommands }, trust)
    const verify = async (name: string): Promise<string> => {
      const server = serverOf({ ...place.server, name, command: 'tool', args: [], package: null })
      return (await registrations.verified(server)).command.file.sha256
    }
    const before = bytesRead()
    const digests = [await verify('one'), await verify('two'), await verify('three')]
    expect(new Set(digests).size).toBe(1)
    expect((bytesRead() - before) / (1 << 24)).toBeLessThan(2)
    appendFileSync(path, 'another')
    expect(digests).not.toContain(await verify('four'))
  })

  test('of a tree that was read before is of the files that are there now, which are not read again where they are the same', async () => {
    await using place = await arrange()
    writeFileSync(place.at('app/large'), Buffer.alloc(1 << 24, '#'))
    const registrations = new Registrations(settingsOf(), trust)
    const named = (name: string) => serverOf({ ...place.server, name })
    const digestOf = async (name: string) => (await registrations.verified(named(name))).package?.digest
    const before = bytesRead()
    const first = await digestOf('first')
    expect(await digestOf('second')).toBe(first)
    expect((bytesRead() - before) / (1 << 24)).toBeLessThan(2)
    appendFileSync(place.at('app/dist/index.js'), '// installed since\n')
    const added = await digestOf('added')
    expect(added).not.toBe(first)
    expect(await digestOf('added')).toBe(added)
    await expectRefusal(() => registrations.verified(named('first')), 'ERR_PACKAGE_CHANGED', 'dist/index.js')
  })

  test('that is one of many on one word is of the tree as it was read for the first of them', async () => {
    await using place = await arrange()
    const registrations = new Registrations(settingsOf(), trust)
    const register = async (name: string) => {
      const server = serverOf({ ...place.server, name })
      return (await registrations.verified(server, { isOneOfMany: true })).package?.digest
    }
    const first = await register('first')
    appendFileSync(place.at('app/dist/index.js'), '// installed since\n')
    expect(await register('second')).toBe(first)
    await expectRefusal(() => register('second'), 'ERR_PACKAGE_CHANGED', 'dist/index.js')
    // Another word begins with other readings.
    registrations.forget([])
    expect(await register('third')).not.toBe(first)
  })

  test('is made once for launches at the same time, and tells each of them the same', async () => {
    await using place = await arrange()
    const registrations = new Registrations(settingsOf(), trust)
    const server = serverOf(place.server)
    const [first, second] = await Promise.all([
      registrations.verified(server),
      registrations.verified(server),
    ])
    expect(second.command.file).toEqual(first.command.file)
    expect(second.package?.digest).toBe(first.package?.digest)
    appendFileSync(place.at('app/dist/index.js'), '// evil\n')
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => registrations.verified(server)))
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  })
})

/** What this process has read so far, files and all else. */
const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])
