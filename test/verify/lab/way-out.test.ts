// The doors of a verification: launches stand beside each other, and each hears of its own door alone.
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import type { OpenDoor } from '../../../src/sandbox/network.ts'
import { openWayOut } from '../../../src/verify/lab/way-out.ts'
import { plantCanaries } from '../../../src/verify/lab/canaries.ts'
import { startJanitor } from '../../../src/verify/lab/janitor.ts'
import { tempDir } from '../../support/temp-dir.ts'

const reaches = async (door: string, host: string, port: number): Promise<void> => {
  const socket = connect(door).on('error', () => undefined)
  socket.resume().write(`SP1 connect ${host} ${port}\nGET / HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\n`)
  await once(socket, 'close')
}

test('what is refused, and looked up, at one of two doors is heard at that one alone, whichever was opened last', async () => {
  await using home = await tempDir()
  await using janitor = await startJanitor()
  await using planted = await plantCanaries(home.path, janitor)
  await using wayOut = await openWayOut(planted.canaries, new AbortController().signal)
  const open: OpenDoor = wayOut.doors([wayOut.grant]).own
  const user = { uid: process.geteuid?.() ?? -1, gid: process.getegid?.() ?? -1, isSelf: true }
  const [first, last] = [await open(user), await open(user)]
  const { host, port } = wayOut.grant
  await reaches(first, 'one.test', port)
  await reaches(last, host, port)
  expect(wayOut.heardAt(first)).toMatchObject({
    reasons: expect.arrayContaining(['name-not-listed one.test']),
    lookedUp: [],
  })
  expect(wayOut.heardAt(last)).toEqual({ reasons: [], lookedUp: [host] })
  expect(wayOut.heardAt('/no/door')).toEqual({ reasons: [], lookedUp: [] })
})
