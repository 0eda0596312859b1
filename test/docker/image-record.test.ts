// What the name of an image led to, on record: before anything runs from it, and when it leads elsewhere.
import { expect } from 'vitest'
import { configOf, fixture, place, serve } from '../support/daemon.ts'
import { engineTest } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { importImage } from '../support/image.ts'
import { bodiesOf } from '../support/witness.ts'

engineTest('a tag is resolved, recorded, and looked at again before a launch', async ({ engine }) => {
  const image = 'sallyport-test/recorded'
  const push = (text: string): Promise<string> =>
    importImage(engine, 'recorded', { files: { '/bin/node': { text } } })
  const registered = await push('one')
  const commands = { allowed_commands: [{ name: 'node', path: '/bin/node' }] }
  await using at = await place(
    configOf({ echo: fixture('echo', { image }) }, { driver: 'docker', ...commands }),
  )
  const { client } = await serve(at, engine.environment)
  await using operator = client
  await eventually(() => bodiesOf(at.stateDir, 'image.pinned').length > 0)
  expect(bodiesOf(at.stateDir, 'image.pinned')).toEqual([
    expect.objectContaining({ server: 'echo', image, id: registered, pinned: registered }),
  ])
  const got = await push('another')
  const call = operator.call('tools/call', { server: 'echo', tool: 'echo', arguments: {} })
  await expect(call).rejects.toMatchObject({ message: expect.stringContaining('reload the daemon') })
  const changed = { server: 'echo', image, registered, got }
  expect(bodiesOf(at.stateDir, 'image.changed')).toContainEqual(expect.objectContaining(changed))
})
