// A REST API over TLS on this machine, under a name that its own list of names has, with a certificate of the test's.
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
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
  readonly port: number
  readonly plainPort: number
  readonly url: string
  readonly caFile: string
  readonly asked: readonly Asked[]
  /** What the next answers are made of, from then on */
  answer(with_: (asked: Asked) => string): void
}

/** A name of this machine with the address that it has, beside localhost, which every sandbox has of its own. */
export function nameOfThisMachine(): { readonly host: string; readonly address: string } {
  for (const line of readFileSync('/etc/hosts', 'utf8').split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/)
    const host = names.find((name) =>
      /^(?!localhost|ip6-|0x)(?=.*[a-z])[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name),
    )
    if (host !== undefined && /^\d+\.\d+\.\d+\.\d+$/.test(address)) return { host, address }
  }
  throw new Error(
    '/etc/hosts has no name of this machine but localhost; add one, e.g. 127.0.1.1 this-machine',
  )
}

export async function openApi(): Promise<Api> {
  const { host, address } = nameOfThisMachine()
  const folder = await tempDir()
  // An authority that this machine does not know: as a company's own is.
  const authority = await createSigner('test', [host])
  const caFile = join(folder.path, 'ca.pem')
  await writeFile(caFile, authority.certificate)
  const asked: Asked[] = []
  let say = (it: Asked): string => JSON.stringify({ hello: it.url })
  const serve = async (request: IncomingMessage, end: (text: string) => unknown): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const it = {
      url: request.url ?? '',
      authorization: request.headers.authorization ?? null,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    }
    asked.push(it)
    end(say(it))
  }
  const secure = createSecure(
    {
      SNICallback: callbackify((name: string) => authority.contextFor(name)),
    },
    (request, response) => void serve(request, (text) => response.end(text)),
  )
  const plain = createServer((request, response) => void serve(request, (text) => response.end(text)))
  for (const server of [secure, plain]) {
    server.listen(0, address)
    await once(server, 'listening')
  }
  const { port } = secure.address() as AddressInfo
  const { port: plainPort } = plain.address() as AddressInfo
  return {
    host,
    port,
    plainPort,
    url: `https://${host}:${port}`,
    caFile,
    asked,
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
