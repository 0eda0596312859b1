// A way to the engine on which what asks for a container waits until a test lets it go: the engine behind it is the real one.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { tempDir } from './temp-dir.ts'

export interface SlowEngine extends AsyncDisposable {
  /** As $DOCKER_HOST takes it */
  readonly address: string
  /** Resolves once a server's container was asked for, which the engine has not heard of */
  readonly asked: Promise<void>
  /** Lets the engine hear of it, whoever is gone by then */
  letGo(): void
}

export const slowEngine = async (socketPath: string): Promise<SlowEngine> => {
  const folder = await tempDir()
  const held: (() => void)[] = []
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ path: socketPath, allowHalfOpen: true })
    let isHeld = false
    near.on('error', () => undefined)
    far.on('error', () => near.destroy()).pipe(near)
    near.on('data', (bytes: Buffer) => {
      isHeld ||= /^POST \S*\/containers\/create\?name=sallyport-d-\S+?-i-/.test(bytes.toString('latin1'))
      if (!isHeld) return void far.write(bytes)
      held.push(() => far.write(bytes))
      resolve()
    })
    near.on('close', () => isHeld || far.destroy())
  })
  const path = join(folder.path, 'engine.sock')
  server.listen(path)
  await once(server, 'listening')
  return {
    address: `unix://${path}`,
    asked,
    letGo: () => held.splice(0).forEach((write) => write()),
    async [Symbol.asyncDispose]() {
      server.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}
