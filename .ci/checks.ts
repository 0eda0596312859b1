// `npm run check` behind its build: everything that judges the sources, as many at once as there are processors. Each shows
// what it printed once it is through, whatever became of the others.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

/** Scripts of package.json, what takes longest first. */
const checks = ['lint', 'dead-code', 'format:check', 'types', 'generated', 'package']

const root = fileURLToPath(new URL('..', import.meta.url))
const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}
const waiting = checks.map((name) => {
  const script = scripts[name]
  if (script === undefined)
    throw new Error(`.ci/checks.ts: package.json has no script ${name}; say here what it is called now`)
  return { name, script }
})
const failed: string[] = []

/** Runs one after the other until none waits. */
async function work(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { name, script } = next
    const started = performance.now()
    const child = spawn('sh', ['-c', `{ ${script}; } 2>&1`], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = new Promise<boolean>((resolve) => child.once('close', (code) => resolve(code === 0)))
    const [said, isGood] = await Promise.all([text(child.stdout), ended])
    const seconds = ((performance.now() - started) / 1000).toFixed(1)
    process.stdout.write(`${said}${name}: ${isGood ? 'good' : 'FAILED'}, ${seconds} s\n`)
    if (!isGood) failed.push(name)
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work))
if (failed.length > 0) {
  process.stdout.write(`failed: ${failed.join(', ')}\n`)
  process.exitCode = 1
}
