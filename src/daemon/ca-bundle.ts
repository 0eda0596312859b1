// The certificates that a sandbox trusts where its own authority stands in for a host: the system's, and that one.
import { readFile } from 'node:fs/promises'
import { rootCertificates } from 'node:tls'
import { isMissing } from '../lib/missing.ts'
import type { DataFile } from '../sandbox/spec.ts'

/** Where the bundle is in the sandbox. */
const target = '/sallyport/ca.pem'

/** Where systems keep theirs: Debian and Alpine, Red Hat, SUSE, OpenSSL's own place. */
const places = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** What Node, OpenSSL, Python, curl, git, pip, AWS, Deno and cargo read the path of a bundle from. */
export const caVariables: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'SSL_CERT_FILE',
    'NODE_EXTRA_CA_CERTS',
    'REQUESTS_CA_BUNDLE',
    'CURL_CA_BUNDLE',
    'GIT_SSL_CAINFO',
    'PIP_CERT',
    'AWS_CA_BUNDLE',
    'DENO_CERT',
    'CARGO_HTTP_CAINFO',
  ].map((name) => [name, target]),
)

/** The bundle as a file of the sandbox; where the system has no roots, Node's own stand in. */
export async function caBundle(certificate: string): Promise<DataFile> {
  return { target, content: `${certificate.trim()}\n${await systemRoots()}`, mode: 0o444 }
}

let known: string | null = null

async function systemRoots(): Promise<string> {
  for (const path of known === null ? places : []) {
    try {
      known = await readFile(path, 'utf8')
      break
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
  known ??= `${rootCertificates.join('\n')}\n`
  return known
}
