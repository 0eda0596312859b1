// What a daemon of root does for a sandbox before it is nobody: groups, and mounts where nobody else has them.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { callNumber } from '../../../src/verify/lab/removal.ts'
import { eventually } from '../../support/eventually.ts'
import { frame } from '../../support/init-frames.ts'
import {
  buildInit,
  closedFolder,
  copyInit,
  fakeTool,
  handOver,
  ids,
  InitProcess,
  initOrders,
  isRoot,
  launch,
  outcome,
  outerOrders,
  run,
  shell,
} from '../../support/init-sandbox.ts'

const binary = buildInit()
const probes = join(dirname(binary), 'sallyport-probes')
const openat2 = 437

/** Lines of mountinfo without those of a container engine, which come and go with its containers while this test runs. */
const mountsIn = (mountinfo: string): readonly string[] =>
  mountinfo
    .split('\n')
    .filter((line) => !/docker|containerd|overlay2|\/tmp\/[^/]+\/[de](\/| )/.test(line.split(' - ')[0] ?? ''))

/** Where a table has mounts. */
const pointsIn = (mountinfo: string): readonly string[] =>
  mountinfo.split('\n').map((line) => line.split(' ')[4] ?? '')

const isBelow = (point: string, folders: readonly string[]): boolean =>
  folders.some((folder) => point === folder || point.startsWith(`${folder}/`))

/** Of what the tool does not need, the mounts of every machine. */
const leftOut = ['/sys', '/dev/shm', '/dev/pts']

describe.runIf(isRoot)('as root', () => {
  it('reaches sources and its own binary below a folder that only root may search', async () => {
    using folder = closedFolder()
    writeFileSync(join(folder.path, 'file'), 'from a closed folder')
    const init = copyInit(folder.path)
    const { stdout, code, diagnostics } = await run(shell('cat /data/file'), {
      init,
      binds: { [folder.path]: '/data' },
    })
    expect({ stdout, code, diagnostics }).toEqual({
      stdout: 'from a closed folder',
      code: 0,
      diagnostics: '',
    })
  })

  it('could not reach them without staging', async () => {
    using folder = closedFolder()
    const unstaged = outerOrders({ bwrap: ['--ro-bind', folder.path, '/data'] })
    await using process = new InitProcess(binary, ['outer'])
    process.send(...unstaged, ...initOrders(shell('true')))
    const { code, diagnostics } = await outcome(process)
    expect(code).not.toBe(0)
    expect(diagnostics).toContain('Permission denied')
  })

  it('stages single files, sources below /tmp and folders with mounts in them', async () => {
    using folder = closedFolder()
    const file = join(folder.path, 'single')
    const mounted = join(folder.path, 'tree', 'mounted')
    mkdirSync(mounted, { recursive: true })
    writeFileSync(file, 'one file')
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', mounted])
    try {
      writeFileSync(join(mounted, 'deep'), 'deep file')
      const binds = { [file]: '/single', [join(folder.path, 'tree')]: '/tree' }
      const { stdout } = await run(shell('cat /single /tree/mounted/deep'), { binds })
      expect(stdout).toBe('one filedeep file')
    } finally {
      execFileSync('umount', [mounted])
    }
  })

  it('stages where nobody but root can put anything, and nothing is executed or opened as a device', async () => {
    await using fake = await fakeTool('grep " /tmp " /proc/$$/mountinfo; stat -c %a /tmp')
    const orders = [frame('m', fake.path, 'tool'), ...handOver('/tmp/tool')]
    await using process = new InitProcess(binary, ['outer'])
    const { diagnostics } = await outcome(process.send(...orders))
    expect(diagnostics).toMatch(/ \/tmp rw,nosuid,nodev,noexec[ ,].* - tmpfs sallyport rw,.*mode=755/)
    expect(diagnostics).toMatch(/^755$/m)
  })

  it('leaves the tool few mounts to read of, and a source that lay in one of those that are gone', async () => {
    await using fake = await fakeTool('cat /tmp/kept/file /proc/$$/mountinfo')
    const folder = mkdtempSync('/dev/shm/sp-')
    try {
      writeFileSync(join(folder, 'file'), 'kept\n')
      chmodSync(folder, 0o755)
      const orders = [frame('m', fake.path, 'tool'), frame('m', folder, 'kept'), ...handOver('/tmp/tool')]
      await using process = new InitProcess(binary, ['outer'])
      const { diagnostics } = await outcome(process.send(...orders))
      expect(diagnostics).toMatch(/^kept$/m)
      expect(pointsIn(readFileSync('/proc/self/mountinfo', 'utf8'))).toEqual(expect.arrayContaining(leftOut))
      expect(pointsIn(diagnostics).filter((point) => isBelow(point, leftOut))).toEqual([])
      expect(pointsIn(diagnostics)).toEqual(expect.arrayContaining(['/', '/proc', '/tmp/kept', '/tmp/tool']))
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  // In a namespace of the test's own, whose mounts are shared with nobody else: what fails here takes its mounts alone.
  it.each([
    ['it got no namespace of its own', ':', `${callNumber('unshare')}`],
    ['its mounts are still shared', 'mount --make-rshared /', `${callNumber('mount')} 3 0x44000 0x44000`],
  ])('takes no mount away from others where %s', async (_, prepare, without) => {
    await using fake = await fakeTool('echo the tool')
    const script = `${prepare} && "$0" without "$1" "$2" "" outer; cat /proc/self/mountinfo >&2`
    const apart = [
      '--mount',
      '--propagation',
      'private',
      '/usr/bin/sh',
      '-c',
      script,
      probes,
      binary,
      without,
    ]
    await using process = new InitProcess('/usr/bin/unshare', apart)
    const { diagnostics } = await outcome(
      process.send(frame('m', fake.path, 'tool'), ...handOver('/tmp/tool')),
    )
    expect(diagnostics).toMatch(/^the tool$/m)
    expect(pointsIn(diagnostics)).toEqual(expect.arrayContaining(leftOut))
  })

  it('stages no source that a symlink stands for by now', async () => {
    using folder = closedFolder()
    const [link, behind] = [join(folder.path, 'link'), join(folder.path, 'link', 'passwd')]
    symlinkSync('/etc', link)
    // The second as on a kernel before openat2, which is told of a link in the last place only.
    const older = [probes, ['without', binary, `=${constants.errno.ENOSYS} ${openat2}`, '', 'outer']] as const
    for (const [file, args, source] of [
      [binary, ['outer'], link],
      [binary, ['outer'], behind],
      [...older, link],
    ] as const) {
      await using process = new InitProcess(file, args)
      const { code, diagnostics } = await outcome(
        process.send(frame('m', source, 'x'), ...handOver('/bin/true')),
      )
      expect({ code, diagnostics }).toEqual({
        code: 125,
        diagnostics: `sallyport-init: staging: ${source}: Too many levels of symbolic links\n`,
      })
    }
  })

  it('shows the host none of its mounts, and leaves none', async () => {
    const before = mountsIn(readFileSync('/proc/self/mountinfo', 'utf8'))
    await using sandbox = launch(shell('sleep 60'))
    await sandbox.report('S')
    expect(mountsIn(readFileSync('/proc/self/mountinfo', 'utf8'))).toEqual(before)
    sandbox.hangUp()
    await sandbox.ended
    expect(mountsIn(readFileSync('/proc/self/mountinfo', 'utf8'))).toEqual(before)
  })

  it('shows its mounts to no namespace whose mounts are shared', async () => {
    // After the sandbox the namespace that it was started in says what it has.
    const script = '"$0" outer; code=$?; cat /proc/self/mountinfo >&2; exit $code'
    const shared = ['--mount', '--propagation', 'shared', '/usr/bin/sh', '-c', script, binary]
    await using process = new InitProcess('/usr/bin/unshare', shared)
    process.send(...outerOrders(), ...initOrders(shell('exit 3')))
    const { code, diagnostics } = await outcome(process)
    expect(code).toBe(3)
    expect(diagnostics).toContain('shared:')
    expect(mountsIn(diagnostics).filter((line) => line.includes('sallyport'))).toEqual([])
  })

  it('joins every cgroup before anything of the sandbox runs', async () => {
    const folders = ['memory', 'pids']
      .map((name) => `/sys/fs/cgroup/${name}`)
      .concat('/sys/fs/cgroup')
      .filter((path) => readdirSync(path).includes('cgroup.procs'))
      .map((path) => join(path, `sp-test-${process.pid}`))
    expect(folders.length).toBeGreaterThan(0)
    for (const folder of folders) mkdirSync(folder)
    try {
      await using sandbox = launch(shell('exec sleep 60'), {
        // By each of the two files, where there are both.
        cgroups: folders.map((path, index) =>
          join(path, index === 0 && existsSync(join(path, 'tasks')) ? 'tasks' : 'cgroup.procs'),
        ),
      })
      await sandbox.report('S')
      // bubblewrap's monitor, PID 1 and the server.
      for (const folder of folders)
        expect(readFileSync(join(folder, 'cgroup.procs'), 'utf8').trim().split('\n')).toHaveLength(3)
      sandbox.hangUp()
      await sandbox.ended
    } finally {
      for (const folder of folders) await eventually(() => (rmdirSync(folder), true))
    }
  })

  it('reports the device and inode of what was mounted, 0 and the errno for what is not there', async () => {
    using folder = closedFolder()
    const { dev, ino } = statSync(folder.path, { bigint: true })
    const targets = [frame('t', '/data'), frame('t', '/nonexistent'), frame('t', '/bin')]
    await using process = new InitProcess(binary, ['outer'])
    process.send(
      ...outerOrders({ binds: { [folder.path]: '/data' } }),
      ...targets,
      ...initOrders(shell('true')),
    )
    const ready = await process.report('R')
    expect([ready.readBigUInt64LE(0), ready.readBigUInt64LE(8), ready.readUInt32LE(16)]).toEqual([
      dev,
      ino,
      0,
    ])
    expect([ready.readBigUInt64LE(20), ready.readBigUInt64LE(28), ready.readUInt32LE(36)]).toEqual([
      0n,
      0n,
      2,
    ])
    // A symlink is reported as itself, never as what it points at.
    expect(ready.readBigUInt64LE(48)).not.toBe(statSync('/usr/bin', { bigint: true }).ino)
    await process.ended
  })

  it('lets the dropped user write where a source is theirs, and nowhere else', async () => {
    using folder = closedFolder()
    const script = shell('touch /data/file; echo $?')
    expect((await run(script, { binds: { [folder.path]: '/data' } })).stdout).toBe('1\n')
    chownSync(folder.path, ids.uid, ids.gid)
    expect((await run(script, { binds: { [folder.path]: '/data' } })).stdout).toBe('0\n')
    expect(statSync(join(folder.path, 'file'))).toMatchObject({ uid: ids.uid, gid: ids.gid, mode: 0o100644 })
  })
})
