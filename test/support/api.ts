// A REST API over TLS on this machine, under a name that nobody but its entry gives an address, with a certificate of the test's.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecure } from 'node:https'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { callbackify } from 'node:util'
import { createSigner } from '../../src/egress/intercept/signer.ts'
import { tempDir } from './temp-dir.ts'

/** What the API was asked. */
export interface Asked {
  readonly url: string
  readonly authorization: string | null
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export interface Api extends AsyncDisposable {
  readonly host: string
  readonly address: string
  readonly port: number
  readonly plainPort: number
  readonly url: string
  readonly caFile: string
  readonly asked: readonly Asked[]
  /** Answers that have begun and not ended: `/endless` has one that never does by itself */
  unfinished(): number
  /** What the next answers are made of, from then on */
  answer(with_: (asked: Asked) => string | Promise<string>): void
}

/** A name that no resolver knows, and where it is. */
const [host, address] = ['api.demo.test', '127.0.0.1']

export async function openApi(): Promise<Api> {
  const folder = await tempDir()
  // An authority that this machine does not know: as a company's own is.
  const authority = await createSigner('test', [host])
  const caFile = join(folder.path, 'ca.pem')
  await writeFile(caFile, authority.certificate)
  const asked: Asked[] = []
  let say = (it: Asked): string | Promise<string> => JSON.stringify({ hello: it.url })
  let unfinished = 0
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const it = {
      url: request.url ?? '',
      authorization: request.headers.authorization ?? null,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    }
    asked.push(it)
    if (it.url !== '/endless') return void response.end(await say(it))
    unfinished += 1
    response.once('close', () => (unfinished -= 1)).write('it begins\n')
    return
  }
  const secure = createSecure(
    {
      SNICallback: callbackify((name: string) => authority.contextFor(name)),
    },
    (request, response) => void serve(request, response),
  )
  const plain = createServer((request, response) => void serve(request, response))
  for (const server of [secure, plain]) {
    server.listen(0, address)
    await once(server, 'listening')
  }
  const { port } = secure.address() as AddressInfo
  const { port: plainPort } = plain.address() as AddressInfo
  return {
    host,
    address,
    port,
    plainPort,
    url: `https://${host}:${port}`,
    caFile,
    asked,
    unfinished: () => unfinished,
    answer: (with_) => (say = with_),
    async [Symbol.asyncDispose]() {
      for (const server of [secure, plain]) {
        server.closeAllConnections()
        server.close()
      }
      await folder[Symbol.asyncDispose]()
    },
  }
}
