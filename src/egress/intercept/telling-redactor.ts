// A redactor that tells of what it finds in what comes from a host.
import type { MaskingStream, Redactor } from '../../schema/credentials.ts'

/** Returns a redactor whose masks tell, once in each stream, the name of each credential that they took out. */
export const tellingRedactor = (redactor: Redactor, tell: (credential: string) => void): Redactor => ({
  ...redactor,
  mask: () => telling(redactor.mask(), tell),
})

const telling = (stream: MaskingStream, tell: (credential: string) => void): MaskingStream => {
  const told = new Set<string>()
  const tellNew = (bytes: Uint8Array): Uint8Array => {
    for (const credential of stream.found) {
      if (told.has(credential)) continue
      told.add(credential)
      tell(credential)
    }
    return bytes
  }
  return {
    push: (chunk) => tellNew(stream.push(chunk)),
    flush: () => tellNew(stream.flush()),
    settle: () => tellNew(stream.settle()),
    found: stream.found,
  }
}
