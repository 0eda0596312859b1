import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'
import { faults } from '../support/fault.ts'

// Nobody else does: the guard that would have was killed with its daemon.
test('a daemon takes away the doors of one before it', async () => {
  await using at = await place()
  const doors = join(at.runtimeDir, 'egress')
  const old = join(doors, 'i-old')
  mkdirSync(old, { recursive: true, mode: 0o711 })
  writeFileSync(join(old, 'door.sock'), '')
  await serve(at)
  expect(readdirSync(doors)).toEqual([])
})

test('a daemon that is killed as it writes down where it answers leaves no draft of that', async () => {
  await using at = await place()
  const fault = faults(at.folder)
  fault.arm('kill-after "url":"unix:')
  const daemon = at.start(['serve'], fault.env)
  await once(daemon, 'exit')
  expect(daemon.signalCode).toBe('SIGKILL')
  await eventually(() => readdirSync(join(at.runtimeDir, 'host')).length === 0)
})
