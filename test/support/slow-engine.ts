// A way to the engine on which what asks for a container, or another thing, waits until a test lets it go: the engine behind it is the real one.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { tempDir } from './temp-dir.ts'

export interface SlowEngine extends AsyncDisposable {
  /** As $DOCKER_HOST takes it */
  readonly address: string
  /** Resolves once that was asked for, which the engine has not heard of */
  readonly asked: Promise<void>
  /** Lets the engine hear of it, whoever is gone by then, and of what is asked for from now on */
  letGo(): void
  /** Has another thing wait from now on, and resolves once that was asked for */
  hold(what: RegExp): Promise<void>
}

const aServersContainer = /^POST \S*\/containers\/create\?name=sallyport-d-\S+?-i-/

export const slowEngine = async (socketPath: string, what = aServersContainer): Promise<SlowEngine> => {
  const folder = await tempDir()
  const held: (() => void)[] = []
  let [waits, isOpen] = [what, false]
  const first = Promise.withResolvers<void>()
  let heard = first.resolve
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ path: socketPath, allowHalfOpen: true })
    let isHeld = false
    near.on('error', () => undefined)
    far.on('error', () => near.destroy()).pipe(near)
    near.on('data', (bytes: Buffer) => {
      isHeld ||= !isOpen && waits.test(bytes.toString('latin1'))
      if (!isHeld) return void far.write(bytes)
      held.push(() => far.write(bytes))
      heard()
    })
    near.on('close', () => isHeld || far.destroy())
  })
  const path = join(folder.path, 'engine.sock')
  server.listen(path)
  await once(server, 'listening')
  return {
    address: `unix://${path}`,
    asked: first.promise,
    letGo() {
      isOpen = true
      for (const write of held.splice(0)) write()
    },
    hold(another) {
      const { promise, resolve } = Promise.withResolvers<void>()
      ;[waits, isOpen, heard] = [another, false, resolve]
      return promise
    },
    async [Symbol.asyncDispose]() {
      server.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}
