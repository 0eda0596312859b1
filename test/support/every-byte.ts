// A confined echo at work: what goes in comes out, and it ends as it was asked to.
import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import type { launchProbe } from './launch.ts'

/** Sends 1 MiB to `confined-echo.mjs`, gets it back byte for byte, and ends it by SIGTERM, to which it says 5. */
export async function expectEveryByte(server: Awaited<ReturnType<typeof launchProbe>>): Promise<void> {
  const sent = randomBytes(1 << 20)
  inputOf(server).write(sent)
  const chunks: Buffer[] = []
  for await (const chunk of server.stdout) {
    chunks.push(chunk as Buffer)
    if (Buffer.concat(chunks).length === sent.length) server.terminate()
  }
  expect(Buffer.concat(chunks).equals(sent)).toBe(true)
  expect(await server.ended).toEqual({ code: 5, signal: null, reason: 'exited' })
}
