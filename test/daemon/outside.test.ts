import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { place, serve } from '../support/daemon.ts'

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
