// Which authorities the machine itself trusts.
import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'

/** Where distributions keep theirs; the first that is there counts. */
const places = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

let known: string | null = null

/** The machine's authorities as PEM, read once; Node's own list where the machine has none. */
export const systemRoots = (): string => (known ??= read() ?? `${rootCertificates.join('\n')}\n`)

const read = (): string | null => {
  for (const place of places) {
    try {
      const text = readFileSync(place, 'utf8')
      if (text.includes('-----BEGIN CERTIFICATE-----')) return text
    } catch {
      // the next distribution's place
    }
  }
  return null
}
