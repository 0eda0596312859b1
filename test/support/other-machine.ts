// A way to the engine over TCP on which it bears another machine's name: the engine behind it is the real one.
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { hostname } from 'node:os'

export interface OtherMachine extends AsyncDisposable {
  /** As $DOCKER_HOST takes it */
  readonly address: string
  /** First line of each request */
  readonly asked: readonly string[]
}

export const otherMachine = async (socketPath: string): Promise<OtherMachine> => {
  const asked: string[] = []
  const name = Buffer.from(`"Name":"${hostname()}"`)
  const server = createServer((near) => {
    const far = connect(socketPath)
    near.once('data', (bytes: Buffer) => asked.push(bytes.toString('latin1').split('\r\n')[0] ?? ''))
    near.on('error', () => undefined).pipe(far)
    far.on('error', () => near.destroy())
    const said: Buffer[] = []
    far.on('data', (bytes: Buffer) => said.push(bytes))
    far.on('end', () => near.end(renamed(Buffer.concat(said), name)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

// As long as before: what the head says of the length stays true.
const renamed = (said: Buffer, name: Buffer): Buffer => {
  const at = said.indexOf(name)
  if (at >= 0) said.fill('x', at + '"Name":"'.length, at + name.length - 1)
  return said
}
