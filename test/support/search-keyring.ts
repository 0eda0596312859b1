// Searches the daemon's session keyring from a sandbox without its filter, and prints what was met.
import { brokenAttempts, withoutFilter } from './escape.ts'

for (const [id, verdict] of Object.entries(await brokenAttempts('keyring.search', withoutFilter)))
  process.stdout.write(`${id} ${verdict}\n`)
