// What a client must say before anything is dialled: on a TLS port a ClientHello for the target, on port 80 a request for it.
import type { Screen } from '../schema/egress.ts'
import { ClientHello } from './client-hello.ts'
import { headReader } from './http-head.ts'
import type { Head } from './http-head.ts'
import type { Passage } from './passage.ts'
import { Refusal } from './refusal.ts'
import { refuseStray } from './stray.ts'

/**
 * Reads the ClientHello and returns its bytes. Throws no-client-hello, sni-missing or sni-invalid, sni-mismatch
 * where it names another host, placeholder-elsewhere where that is one, hello-timeout.
 */
export async function expectHello(passage: Passage, ms: number, screen: Screen | null): Promise<Buffer> {
  const { opening, host, port } = passage
  const hello = new ClientHello()
  const chunks: Buffer[] = []
  const name = await opening.read(
    (chunk) => {
      chunks.push(chunk)
      const found = hello.push(chunk)
      return found === null ? null : { value: found, used: chunk.length }
    },
    { ms, late: 'hello-timeout' },
  )
  if (name !== host) refuseStray(screen, name, { host, port })
  if (name !== host) throw new Refusal('sni-mismatch')
  const [first = Buffer.alloc(0), ...more] = chunks
  return more.length === 0 ? first : Buffer.concat(chunks)
}

/** Reads the head of a request; its body stays where it is. Throws what the head's reader says, and head-timeout. */
export async function expectHead({ opening }: Passage, ms: number): Promise<Head> {
  return opening.read(headReader(), { ms, late: 'head-timeout' })
}
