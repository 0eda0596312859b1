// The supervisor's end of a control channel, over real sockets.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ControlChannel } from '../../../src/sandbox/control/channel.ts'
import { tempDir } from '../../support/temp-dir.ts'

test('is closed where whoever connected was gone before anybody listened', async () => {
  await using folder = await tempDir()
  const server = createServer().listen(join(folder.path, 's'))
  await once(server, 'listening')
  const there = connect(join(folder.path, 's'))
  const [here] = (await once(server, 'connection')) as [Socket]
  server.close()
  const closed = once(here, 'close')
  there.destroy()
  await closed
  const channel = new ControlChannel(here)
  await channel.closed
  expect(await channel.next()).toBeNull()
})
