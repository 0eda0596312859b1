// Runs one egress request and prints its outcome: a test's launch under another user.
import { type EgressRequest, runInside } from './egress.ts'

process.stdout.write(JSON.stringify(await runInside(JSON.parse(process.argv[2] ?? '{}') as EgressRequest)))
