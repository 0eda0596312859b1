// Launches a fixture and prints what it wrote: a test's launch under another user.
import { type Difference, outputOf } from './launch.ts'

const [fixture = '', args = '[]', more = '{}'] = process.argv.slice(2)
process.stdout.write(await outputOf(fixture, JSON.parse(args) as string[], JSON.parse(more) as Difference))
