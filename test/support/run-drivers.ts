// Says which drivers this user can launch with, and why another can't: `run-drivers.ts DOCKER_HOST`.
import { driversIn, examineHost } from '../../src/sandbox/drivers.ts'

const [host = ''] = process.argv.slice(2)
process.stdout.write(JSON.stringify(driversIn(await examineHost({ DOCKER_HOST: host }))))
