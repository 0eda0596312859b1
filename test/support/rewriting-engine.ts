// A way to the engine on which it is asked for another program than Sallyport says: the engine behind it is the real one.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { tempDir } from './temp-dir.ts'

export interface RewritingEngine extends AsyncDisposable {
  /** As $DOCKER_HOST takes it */
  readonly address: string
}

/** Replaces one text by another of as many bytes in whatever is said to the engine. */
export const rewritingEngine = async (
  socketPath: string,
  from: string,
  to: string,
): Promise<RewritingEngine> => {
  if (Buffer.byteLength(from) !== Buffer.byteLength(to)) throw new Error(`${from} and ${to} differ in length`)
  const folder = await tempDir()
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ path: socketPath, allowHalfOpen: true })
    near.on('error', () => far.destroy()).on('close', () => far.destroy())
    far.on('error', () => near.destroy()).pipe(near)
    near.on('data', (bytes: Buffer) => {
      far.write(Buffer.from(bytes.toString('latin1').replaceAll(from, to), 'latin1'))
    })
    near.on('end', () => far.end())
  })
  const path = join(folder.path, 'engine.sock')
  server.listen(path)
  await once(server, 'listening')
  return {
    address: `unix://${path}`,
    async [Symbol.asyncDispose]() {
      server.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}
