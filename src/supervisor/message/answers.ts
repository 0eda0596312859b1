// The lines that Sallyport itself writes into a session: answers in another's stead, each on one line, ASCII but for the id.
import { pathToFileURL } from 'node:url'
import { basename } from 'node:path'
import type { SallyportError } from '../../errors.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { MessageId } from './message-id.ts'

/** An error answer; `id` null where the request could not be read. In latin1 reading, with its line feed. */
export const errorLine = (id: MessageId | null, error: SallyportError): string =>
  `{"jsonrpc":"2.0","id":${id?.raw ?? 'null'},"error":${ascii(error.toRpc())}}\n`

/** A result answer. */
export const resultLine = (id: MessageId, result: unknown): string =>
  `{"jsonrpc":"2.0","id":${id.raw},"result":${ascii(result)}}\n`

/** What a server that does not know `server/discover` says to it. */
export const unknownMethodLine = (id: MessageId): string =>
  `{"jsonrpc":"2.0","id":${id.raw},"error":{"code":-32601,"message":"Method not found"}}\n`

/** Tells the peer that a request of its own is no longer waited for. */
export const cancelledLine = (id: MessageId, reason: string): string =>
  `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id.raw},"reason":${ascii(reason)}}}\n`

/** The user was not asked and says no. */
export const declined = { action: 'decline' } as const

/** The roots that a server is told: its declared mounts as it sees them, or none; never the host's own. */
export function rootsOf(server: Pick<ServerSettings, 'roots' | 'mounts'>): {
  roots: { uri: string; name: string }[]
} {
  if (server.roots === 'none') return { roots: [] }
  return {
    roots: server.mounts.map(({ target }) => ({ uri: pathToFileURL(target).href, name: basename(target) })),
  }
}

/** JSON in which every character beyond ASCII is escaped, so that it can stand in a latin1 line. */
export const ascii = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
