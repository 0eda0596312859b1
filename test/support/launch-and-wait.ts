// A daemon that is going to be killed: says so, launches three sandboxes at once whose servers would stay, and waits.
import { planOf, start } from './plan.ts'

const [marker = '', uid = '0'] = process.argv.slice(2)
// Ignores what can be ignored, and leaves a daemon of its own.
const stay = 'sh -c "while :; do sleep 600; done" "$0"'
const script = `trap "" TERM HUP INT; (setsid ${stay} >/dev/null 2>&1 &); while :; do sleep 600; done`
const ids = process.getuid?.() === 0 ? { hostUid: Number(uid), hostGid: Number(uid) } : {}
const plan = await planOf(['/bin/sh', '-c', script, marker], { spec: ids })
process.stdout.write('launching\n')
await Promise.all([plan, plan, plan].map(start))
process.stdout.write('launched\n')
setInterval(() => {}, 60_000)
