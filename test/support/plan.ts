// A plan for the driver alone, made by hand: the machine's /usr, one program, no cgroups.
import { lstatSync, readlinkSync, statSync } from 'node:fs'
import { newInstanceId } from '../../src/lib/ids.ts'
import { silent } from '../../src/lib/logger.ts'
import { bubblewrapArguments } from '../../src/sandbox/bubblewrap/argv.ts'
import { type BubblewrapPlan, confine } from '../../src/sandbox/bubblewrap/driver.ts'
import { presentProcMasks } from '../../src/sandbox/bubblewrap/masks.ts'
import { stageSources } from '../../src/sandbox/bubblewrap/staging.ts'
import type { SandboxProcess } from '../../src/sandbox/driver.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { innerLimits, limitsWithRelay, type OuterLimits } from '../../src/sandbox/limits/limits.ts'
import { compileSeccomp } from '../../src/sandbox/seccomp.ts'
import { type Mount, mountsOf, type SandboxSpec } from '../../src/sandbox/spec.ts'
import { patienceMs } from './patience.ts'

const isRoot = process.getuid?.() === 0

/** A uid that no other test has at the same time, or our own where we are not root. */
export const ownUid = (): number =>
  isRoot ? 100_000 + Math.floor(Math.random() * 1_000_000) : (process.getuid?.() ?? -1)

/** Returns a mount of what the path is now. */
export const mountOf = (source: string, target: string, more: Partial<Mount> = {}): Mount => {
  const status = statSync(source, { bigint: true })
  const { dev, ino } = status
  const kind = status.isDirectory() ? 'directory' : 'file'
  return { source, target, access: 'read', kind, dev, ino, reason: 'a test', origin: 'server', ...more }
}

const rootLinks = ['bin', 'sbin', 'lib', 'lib64', 'lib32', 'libx32'].flatMap((name) => {
  const isLink = lstatSync(`/${name}`, { throwIfNoEntry: false })?.isSymbolicLink() === true
  return isLink ? [{ path: `/${name}`, text: readlinkSync(`/${name}`) }] : []
})

const noLimits: OuterLimits = {
  joinFiles: [],
  watch() {},
  hasRunOut: () => false,
  [Symbol.asyncDispose]: () => Promise.resolve(),
}

/** Returns a plan that runs the argv, with whatever the test wants different. */
export const planOf = async (
  argv: readonly string[],
  {
    spec: more = {},
    ...rest
  }: Partial<Omit<BubblewrapPlan, 'spec'>> & { readonly spec?: Partial<SandboxSpec> } = {},
): Promise<BubblewrapPlan> => {
  const uid = ownUid()
  const spec: SandboxSpec = {
    server: 'probe',
    instance: newInstanceId(),
    profile: 'offline',
    program: { path: argv[0] ?? '', argv },
    cwd: '/',
    environment: { PATH: { value: '/usr/bin:/bin', origin: 'base' } },
    hostUid: uid,
    hostGid: isRoot ? uid : (process.getgid?.() ?? -1),
    links: rootLinks,
    files: [],
    network: { mode: 'none' },
    hasCredentialFiles: false,
    exec: 'any',
    syscalls: { base: 'strict', allow: [], deny: [] },
    stop: { eofMs: 200, termMs: 300 },
    limits: {
      memoryBytes: 536_870_912,
      pids: 64,
      cpu: 1,
      openFiles: 1024,
      fileBytes: 1_073_741_824,
      tmpBytes: 67_108_864,
      enforcement: { memory: 'best-effort', cpu: 'best-effort', pids: 'required', files: 'required' },
    },
    ...more,
    mounts: [mountOf('/usr', '/usr', { origin: 'runtime' }), ...(more.mounts ?? [])],
  }
  const launcher = await findInitBinary()
  const { staged, stagedSource } = stageSources(
    [...mountsOf(spec).map(({ source }) => source), launcher],
    isRoot,
  )
  return {
    driver: 'bubblewrap',
    spec,
    launcher,
    tool: '/usr/bin/bwrap',
    arguments: bubblewrapArguments(spec, {
      stagedSource,
      initPath: stagedSource({ source: launcher }),
      seccomp: compileSeccomp(spec.syscalls, process.arch === 'arm64' ? 'arm64' : 'x64', spec.network.mode),
    }),
    covers: await presentProcMasks(),
    staged,
    outerLimits: noLimits,
    innerLimits: innerLimits(limitsWithRelay(spec), { nprocPerNamespace: true }),
    enforcedBy: { memory: 'none', pids: 'rlimit', cpu: 'none', files: 'rlimit', tmp: 'tmpfs' },
    secrets: () => ({ environment: {}, files: [] }),
    log: silent,
    ...rest,
  }
}

/** Confines, opens the gate, and hands the running server over. */
export const start = async (plan: BubblewrapPlan): Promise<SandboxProcess> => {
  const signal = AbortSignal.timeout(patienceMs)
  const gate = await confine(plan, { signal })
  return await gate.open({ signal })
}

/** Reads a stream to its end. */
export const textOf = async (stream: AsyncIterable<Buffer>): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** Runs the argv to its end, with stdin closed. */
export const run = async (
  plan: BubblewrapPlan,
): Promise<{
  readonly stdout: string
  readonly stderr: string
  readonly exit: Awaited<SandboxProcess['ended']>
}> => {
  await using server = await start(plan)
  server.stdin.end()
  const [stdout, stderr] = await Promise.all([textOf(server.stdout), textOf(server.stderr)])
  return { stdout, stderr, exit: await server.ended }
}
