// What one process for each daemon keeps of the binary while it waits: the code that it waits in, and not what its start took.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { buildInit } from '../../support/init-sandbox.ts'
import { tempDir } from '../../support/temp-dir.ts'

const binary = buildInit()

/** What of the binary's code and constants is mapped in a process, as a share of the file. */
function keptBy(pid: number | undefined): number {
  const kib = Number(/^RssFile:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1])
  return (kib * 1024) / statSync(binary).size
}

it('a guard that waits keeps less than three quarters of its code in memory', async () => {
  await using folder = await tempDir()
  const guard = spawn(binary, ['guard', folder.path], { env: {}, stdio: ['pipe', 'pipe', 'inherit'] })
  await once(guard.stdout, 'data')
  guard.stdin.write(`rmdir ${join(folder.path, 'one')}\nwrong\n`)
  expect(String((await once(guard.stdout, 'data'))[0])).toMatch(/^refused /)
  expect(keptBy(guard.pid)).toBeLessThan(0.75)
  guard.stdin.end()
  await once(guard, 'exit')
})

it('a peer query that waits keeps less than three quarters of its code in memory', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const server = createServer().listen(path)
  await once(server, 'listening')
  const client = connect(path)
  const [accepted] = (await once(server, 'connection')) as [Socket]
  const peer = spawn(binary, ['peer'], { env: {}, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  peer.send('', accepted)
  await once(peer, 'message')
  expect(keptBy(peer.pid)).toBeLessThan(0.75)
  peer.disconnect()
  await once(peer, 'exit')
  client.destroy()
  accepted.destroy()
  server.close()
})

it('a launcher that waits for its orders keeps less than half of its code in memory', async () => {
  const launcher = spawn(binary, ['outer'], {
    env: {},
    stdio: ['ignore', 'ignore', 'inherit', 'pipe', 'pipe', 'pipe', 'pipe'],
  })
  await eventually(() => keptBy(launcher.pid) < 0.5)
  launcher.kill('SIGKILL')
  await once(launcher, 'exit')
})
