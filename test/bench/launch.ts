// From asking for a server to its answer to `initialize`: bare, in bubblewrap alone, through Sallyport, and as others start one. The
// server is the quickest that Node can run. Run after npm run build: node test/bench/launch.ts [rounds]
import { fileURLToPath } from 'node:url'
import { dial } from '../../src/rpc/dial.ts'
import { runtimePaths } from '../../src/rpc/runtime-dir.ts'
import { Undoing } from '../support/broken-off.ts'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { descendantsOf } from '../support/leaks.ts'
import { fixture as pathOf } from '../support/plain-launch.ts'
import { tempDir } from '../support/temp-dir.ts'
import { bareSandbox } from './bubblewrap.ts'
import { type Command, containers } from './containers.ts'
import { counts } from './counts.ts'
import { type Arm, boundBy, publish } from './figures.ts'
import { gateways, initialized, startGateway } from './gateways.ts'
import { install, nameOf } from './peers.ts'
import { answered, hello, srtCommand, timed } from './starts.ts'
import { byTurns, type Measured } from './turns.ts'
import { until } from './until.ts'

const { rounds } = counts({ rounds: 25 })
const shim = fileURLToPath(new URL(`../../dist/libexec/${process.arch}/sallyport-stdio`, import.meta.url))
const script = pathOf('raw-echo.mjs')

await using stack = new Undoing()
const folder = await stack.starting(() => tempDir())
const running = await stack.starting(() => daemon(configOf({ echo: fixture('raw-echo') })))
const absent: Arm[] = []
const measured: readonly Measured[] = [
  { name: 'bare', kind: 'base', once: () => started([process.execPath, script]) },
  {
    name: 'bubblewrap alone',
    kind: 'bound',
    once: () => started(['bwrap', ...bareSandbox, process.execPath, script]),
  },
  { name: 'host.sock', kind: 'ours', once: attached },
  {
    name: 'sallyport-stdio',
    kind: 'ours',
    once: () => started([shim, 'echo', '--no-autostart'], running.env),
  },
  ...(await others()),
]
const launches = await byTurns(measured, rounds)
publish([
  {
    id: 'launch',
    what: 'from the start of a server to its answer to initialize',
    unit: 'ms',
    arms: [...launches, ...absent],
    judged: [
      {
        arm: 'host.sock',
        by: 'added',
        target: 15,
        bounds: [boundBy('added', launches, 'bubblewrap alone')],
      },
    ],
    note: 'The daemon is up; each launch is a new sandbox. sallyport-stdio is the same with the start of the shim. supergateway and mcp-proxy, which put nothing around their server, start with it.',
  },
])

async function started(command: Command, env?: Readonly<Record<string, string>>): Promise<number> {
  const took = await timed(command, folder.path, (write, read) => answered(write, read), env)
  await gone()
  return took
}

/** A session over the socket: attach, hello, answer. Its server ends with it. */
async function attached(): Promise<number> {
  const began = performance.now()
  const caller = await dial(runtimePaths(running.runtimeDir).hostSocket)
  await caller.call('session/attach', { server: 'echo' })
  const { socket } = caller.handOver()
  await answered(socket, socket)
  const taken = performance.now() - began
  socket.destroy()
  await gone()
  return taken
}

async function others(): Promise<readonly Measured[]> {
  const without = (name: string, { absent: why }: { readonly absent: string }): readonly Measured[] => {
    absent.push({ name, kind: 'peer', values: [], absent: why })
    return []
  }
  const peer = (name: string, once: () => Promise<number>): readonly Measured[] => [
    { name, kind: 'peer', once },
  ]
  const srt = await srtCommand(folder.path)
  const docker = await stack.starting(containers)
  const serving = await Promise.all(
    gateways.map(async (name) => {
      const program = await install(name, folder.path)
      return typeof program === 'string'
        ? peer(nameOf(name), () => served(name, program))
        : without(nameOf(name), program)
    }),
  )
  return [
    ...('absent' in srt ? without(nameOf('srt'), srt) : peer(nameOf('srt'), () => started(srt(script)))),
    ...('absent' in docker
      ? without('docker run', docker)
      : peer('docker run', () => started(docker.run('raw-echo.mjs')))),
    ...serving.flat(),
  ]
}

/** A gateway with a server that says what the SDK asks for, until it answers over HTTP. */
async function served(name: (typeof gateways)[number], program: string): Promise<number> {
  const began = performance.now()
  await using serving = await stack.starting(() => startGateway(name, program, pathOf('echo.mjs')))
  await initialized(serving, hello)
  return performance.now() - began
}

/** Nothing that the last one left works on while the next is measured. */
async function gone(): Promise<void> {
  const below = (): readonly { readonly name: string }[] => descendantsOf(running.process.pid ?? 0)
  await until('the last launch is gone', () =>
    below().every(({ name }) => name !== 'node' && name !== 'bwrap'),
  )
}
