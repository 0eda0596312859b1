// The least that a process in between can be in Node: it passes bytes on, both ways, and looks at none. `node node-pipe.ts COMMAND ARGS`
import { spawn } from 'node:child_process'

const [command = '', ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
process.stdin.pipe(child.stdin)
child.stdout.pipe(process.stdout)
