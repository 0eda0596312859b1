// `npm run demo`: three published servers do their work behind the wall, one calls an API with a token that it never has,
// and a hostile one tries to get out.
// Ends with 0 only if every line is as promised, and leaves nothing behind. `--driver docker` has an engine confine them all.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Client as McpClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { apiTable } from './api.ts'
import { attemptsOn, type Findings, type Outcome, type Try } from './attempts.ts'
import { plant, secretEnvironment, Stage, startDaemon, type Daemon, type Driver, type Loot } from './stage.ts'
import { bold, dim, green, printTable, red, short, type Table } from './table.ts'
import { callDeadlineMs, socketTable, stdioTable } from './work.ts'

const started = performance.now()
const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => reject(new Error(`interrupted by ${signal}`)))
})
let verdict = red('the demo broke off')
try {
  await using stage = new Stage(chosenDriver())
  const broken = await Promise.race([play(stage), interrupted])
  verdict = broken === 0 ? green('every line is as promised') : red(`${broken} not as promised`)
  process.exitCode = broken === 0 ? 0 : 1
} catch (error) {
  process.exitCode = 1
  console.error(`\n${red(error instanceof Error ? error.message : String(error))}`)
}
console.log(`\n${verdict} ${dim(`(${((performance.now() - started) / 1000).toFixed(1)} s)`)}`)

function chosenDriver(): Driver {
  const { driver } = parseArgs({ options: { driver: { type: 'string', default: 'bubblewrap' } } }).values
  if (driver === 'bubblewrap' || driver === 'docker') return driver
  throw new Error(`--driver: got ${driver}, expected bubblewrap or docker`)
}

/** Plays all of it and returns how many lines are not as promised. */
async function play(stage: Stage): Promise<number> {
  const daemon = await startDaemon(stage)
  const { version, separation } = daemon.client.hello
  console.log(
    `${bold('Sallyport')} ${version}, daemon ${daemon.pid}, separation: ${separation}, driver ${stage.driver}`,
  )
  return (
    printTable(await socketTable(daemon)) +
    printTable(await stdioTable(daemon)) +
    printTable(await apiTable(stage)) +
    printTable(await hostileTable(stage, daemon, await plant(stage)))
  )
}

/** Both arms: the hostile server as any host would start it, and the same file behind the wall. */
async function hostileTable(stage: Stage, { client, pid }: Daemon, loot: Loot): Promise<Table> {
  const bare = new McpClient({ name: 'demo', version: '1.0.0' })
  await bare.connect(bareServer())
  stage.onEnd(() => bare.close())
  const outside: Try = async (name, args) => findingsIn(await bare.callTool({ name, arguments: args }))
  const inside: Try = async (tool, args) => {
    const waiting = { signal: AbortSignal.timeout(callDeadlineMs) }
    return findingsIn(
      (await client.call('tools/call', { server: 'hostile', tool, arguments: args }, waiting)).data,
    )
  }
  const rows = []
  for (const { title, isTriedBare, run } of attemptsOn(loot, pid)) {
    const control = isTriedBare ? await run(outside, true) : null
    const held = await run(inside, false)
    rows.push({
      cells: [title, shown(control, red), shown(held, held.isSuccess ? red : green)],
      isAsPromised: !held.isSuccess && (control === null || control.isSuccess),
    })
  }
  return { title: 'A hostile server tries to', head: ['', 'without Sallyport', 'with Sallyport'], rows }
}

function shown(outcome: Outcome | null, paint: (text: string) => string): string {
  return outcome === null ? dim('not tried') : paint(short(outcome.words, 36))
}

function bareServer(): StdioClientTransport {
  const file = fileURLToPath(new URL('../fixtures/servers/hostile.mjs', import.meta.url))
  const env = Object.fromEntries(
    Object.entries(secretEnvironment()).map(([name, value]) => [name, value ?? '']),
  )
  return new StdioClientTransport({ command: process.execPath, args: [file], env, stderr: 'ignore' })
}

function findingsIn(result: unknown): Findings {
  return (result as { readonly structuredContent: Findings }).structuredContent
}
