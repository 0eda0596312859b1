// A daemon in small, to be killed: holds one sandbox that runs the given argv, and passes its stdout on.
import { planOf, start } from './plan.ts'

const server = await start(
  await planOf(process.argv.slice(2), { spec: { stop: { eofMs: 60_000, termMs: 60_000 } } }),
)
server.stdout.pipe(process.stdout)
