// Plants what a verification plants and prints who it is, which process a sandbox must not find, and the port on ::1: perhaps as PID 1.
import { plantCanaries } from '../../src/verify/lab/canaries.ts'
import { startJanitor } from '../../src/verify/lab/janitor.ts'

const [home = ''] = process.argv.slice(2)
await using janitor = await startJanitor()
await using planted = await plantCanaries(home, janitor)
const { pid, port6 } = planted.canaries
process.stdout.write(
  JSON.stringify({ self: process.pid, planted: pid, isThere: process.kill(pid, 0), port6 }),
)
