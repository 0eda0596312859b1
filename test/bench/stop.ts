// How long a daemon takes to end with servers that ignore EOF and SIGTERM, and what is left. Run after npm run build:
// node test/bench/stop.ts [servers] [rounds]
import { once } from 'node:events'
import { configOf, daemon, fixture } from '../support/daemon.ts'
import { processesWith } from '../support/leaks.ts'
import { publish } from './figures.ts'

const [servers = 50, rounds = 3] = process.argv.slice(2).map(Number)
const ladder = { eof_ms: 500, term_ms: 1000 }
const names = Array.from({ length: servers }, (_, n) => `stubborn${n}`)
const config = configOf(
  Object.fromEntries(names.map((name) => [name, fixture('ignore-sigterm', { stop: ladder })])),
)

await using stack = new AsyncDisposableStack()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stack.disposeAsync().finally(() => process.exit(1)))
const taken: number[] = []
const left: number[] = []
for (let round = 0; round < rounds; round++) {
  const running = stack.use(await daemon(config))
  for (const server of names) await running.client.call('servers/start', { server })
  const exit = once(running.process, 'exit')
  const began = performance.now()
  running.process.kill('SIGTERM')
  await exit
  taken.push((performance.now() - began) / 1000)
  left.push(processesWith(`${running.folder}/`).length)
}
publish([
  {
    id: 'stop',
    what: `the daemon’s end with ${servers} servers that ignore EOF and SIGTERM`,
    unit: 's',
    arms: [{ name: 'sallyport', kind: 'ours', values: taken }],
    judged: [{ arm: 'sallyport', by: 'value', target: (ladder.eof_ms + ladder.term_ms + 500) / 1000 }],
    note: `The ladder is ${ladder.eof_ms} ms for EOF and ${ladder.term_ms} ms for SIGTERM, and the target half a second more.`,
  },
  {
    id: 'left',
    what: 'processes left after it',
    unit: 'processes',
    arms: [{ name: 'sallyport', kind: 'ours', values: left }],
    judged: [{ arm: 'sallyport', by: 'value', target: 0 }],
  },
])
