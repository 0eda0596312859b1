// What a daemon found a program to be outlives it: the next one's first launch does not wait for a hundred MiB to be read.
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configOf, endServe, fixture, place, serve } from '../support/daemon.ts'

test('a runtime that one daemon has read is not read by the next, which finds the same digest', async () => {
  await using at = await place(configOf({ echo: fixture('echo') }))
  const kept = join(at.stateDir, 'programs.json')
  mkdirSync(at.stateDir, { mode: 0o700 })
  writeFileSync(kept, '{"version":1,"programs":[]}', { mode: 0o600 })
  const life = async (): Promise<{ share: number; sha256: string | undefined }> => {
    const running = await serve(at)
    await running.client.call('tools/call', { server: 'echo', tool: 'echo', arguments: { text: 'a' } })
    const io = readFileSync(`/proc/${running.process.pid}/io`, 'utf8')
    const { command } = await running.client.call('servers/get', { server: 'echo' })
    await endServe(running)
    return {
      share: Number(/^rchar: (\d+)/m.exec(io)?.[1]) / statSync(process.execPath).size,
      sha256: command?.sha256,
    }
  }
  const [first, second] = [await life(), await life()]
  expect(first.share).toBeGreaterThan(0.99)
  expect(second.share).toBeLessThan(0.5)
  expect(second.sha256).toMatch(/^[0-9a-f]{64}$/)
  expect(second.sha256).toBe(first.sha256)
})
