// A daemon in small, to be killed: holds one container in the state folder of argv[2], and says so on stdout.
import { launchHost, launchProbe, settingsFor } from './launch.ts'

const host = await launchHost({ stateDirectory: process.argv[2] ?? '', environment: process.env })
const settings = await settingsFor('ignore-sigterm.mjs', [], { driver: 'docker' })
const server = await launchProbe(settings, host)
process.stdout.write(`${server.initPid}\n`)
await server.ended
