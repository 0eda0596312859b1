// `sallyport start` and `sallyport stop`: a server is up before anybody calls it, and down with nothing left, by the built command line.
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { configOf, daemon, fixture } from '../support/daemon.ts'

test('a server is started by name, once, and stopped by name; the next call starts it again', async () => {
  await using at = await daemon(
    configOf({ echo: fixture('echo') }, { rules: [{ permission: 'mcp:*:*', action: 'allow' }] }),
  )
  const first = await at.run(['start', 'echo', '--json'])
  expect(first.status, first.stderr).toBe(0)
  const { id, pid, state } = JSON.parse(first.stdout)
  expect({ state, runs: existsSync(`/proc/${pid}`) }).toEqual({ state: 'ready', runs: true })
  expect((await at.run(['start', 'echo'])).stderr).toContain(`echo is ready: ${id}`)

  const stopped = await at.run(['stop', 'echo', '--json'])
  expect(JSON.parse(stopped.stdout)).toEqual({ stopped: [id] })
  expect(existsSync(`/proc/${pid}`)).toBe(false)
  const { stderr } = await at.run(['stop', 'echo'])
  expect(stderr).toContain('nothing that is yours to stop was running of echo') // whatever runs for others
  expect(stderr).not.toContain('is stopped')
  expect((await at.run(['call', 'echo', 'echo', '-a', 'text=again'])).status).toBe(0)
})

test('a name that no server has is an error with that name', async () => {
  await using at = await daemon(configOf({ echo: fixture('echo') }))
  for (const verb of ['start', 'stop']) {
    const { status, stderr } = await at.run([verb, 'nobody'])
    expect({ status, names: stderr.includes('nobody') }, stderr).toEqual({ status: 8, names: true })
  }
})
