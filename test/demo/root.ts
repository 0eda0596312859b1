// What is around the demo's servers: files of this machine under bubblewrap, an image with a Node of its own under docker.
import Docker from 'dockerode'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { importImage, nodeFiles } from '../support/image.ts'
import type { Stage } from './stage.ts'

/** The Node that servers run on, and the image whose root they have, where they have one. */
export interface Root {
  readonly commands: readonly { readonly name: 'node'; readonly path: string }[]
  readonly server: { readonly driver: Stage['driver']; readonly image?: string }
}

const making = new WeakMap<Stage, Promise<Root>>()

/** Has the engine make the image once, of local files, since nothing is pulled; it goes away with the stage. */
export const rootOf = (stage: Stage): Promise<Root> => {
  const root = making.get(stage) ?? makeRoot(stage)
  making.set(stage, root)
  return root
}

const makeRoot = async (stage: Stage): Promise<Root> => {
  if (stage.driver === 'bubblewrap')
    return { commands: [{ name: 'node', path: process.execPath }], server: { driver: 'bubblewrap' } }
  const endpoint = findEndpoint(process.env)
  const docker = endpoint.kind === 'unix' ? new Docker({ socketPath: endpoint.socketPath }) : new Docker()
  const name = `demo-${process.pid}`
  const image = await importImage({ docker }, name, { files: await nodeFiles() })
  stage.onEnd(() => docker.getImage(`sallyport-test/${name}`).remove())
  return { commands: [{ name: 'node', path: '/usr/local/bin/node' }], server: { driver: 'docker', image } }
}
