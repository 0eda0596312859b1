// Another program in our place: its status is ours, and so are the signals that end us.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'

const module = new URL('../../src/lib/exec.ts', import.meta.url).href

async function run(script: string, signal?: NodeJS.Signals): Promise<{ status: unknown; stdout: string }> {
  const code = `
    import { runInPlace } from ${JSON.stringify(module)}
    process.exit(await runInPlace('/bin/sh', ['-c', ${JSON.stringify(script)}], { WORD: 'given' }))`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let stdout = ''
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString()
    if (signal !== undefined) child.kill(signal)
  })
  const [status] = await once(child, 'close')
  return { status, stdout }
}

it('gives its status and its output, and no variable that was not handed over', async () => {
  expect(await run('echo "$WORD$HOME"; exit 9')).toEqual({ status: 9, stdout: 'given\n' })
})

it('is 128 + n for a signal', async () => {
  expect(await run('kill -9 $$')).toMatchObject({ status: 137 })
})

it('passes on what ends us', async () => {
  const script = 'trap "exit 5" TERM; echo ready; while :; do sleep 0.05; done'
  expect(await run(script, 'SIGTERM')).toMatchObject({ status: 5 })
})
