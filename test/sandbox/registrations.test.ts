// Registrations of several configs: each reads its programs itself, unless it is told that they are another's too.
import { readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { pinFileOnce } from '../../src/sandbox/program/pinned-file.ts'
import { Registrations } from '../../src/sandbox/registrations.ts'
import { serverOf, settingsOf, trust } from '../support/settings.ts'

/** Bytes that this process has read so far. */
const bytesRead = (): number => Number(/^rchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

test('a program that one config has read is read by another, and not where both read by the same', async () => {
  const server = serverOf({ command: 'node', args: ['/app/server.js'] })
  const pinFile = pinFileOnce()
  const readBy = async (...shared: [typeof pinFile] | []): Promise<number> => {
    const before = bytesRead()
    const { command } = await new Registrations(settingsOf(), trust, undefined, ...shared).verified(server)
    return (bytesRead() - before) / statSync(command.path).size
  }
  expect(await readBy(pinFile)).toBeGreaterThan(0.99)
  expect(await readBy()).toBeGreaterThan(0.99)
  expect(await readBy(pinFile)).toBeLessThan(0.5)
})
