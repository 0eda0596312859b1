// Prints which descriptors a bare child of this process gets, and which a confined server.
import { execFileSync } from 'node:child_process'
import { planOf, run } from './plan.ts'

const listing = ['/bin/ls', '/proc/self/fd']
const bare = execFileSync(listing[0] ?? '', listing.slice(1), { encoding: 'utf8' })
const { stdout } = await run(await planOf(listing))
process.stdout.write(JSON.stringify({ bare: bare.trim().split('\n'), confined: stdout.trim().split('\n') }))
