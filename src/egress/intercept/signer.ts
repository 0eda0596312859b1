// A sandbox's own certificate authority: in memory, for its hosts alone, gone with it.
// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 stands on it and does not bring it
import 'reflect-metadata'
import { constants, createPrivateKey, KeyObject, randomBytes, webcrypto } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'

/**
 * Life of the authority's certificate, ms: longer than its sandbox, which for one call is a day at most. Clients read it once,
 * when they start, and a certificate that ran out ends their trust even where its key was certified anew. What ends the
 * authority is the end of its sandbox: nobody else trusts it, and its key is gone with the memory that it was in.
 */
const authorityMs = { call: 25 * 3_600_000, session: 10 * 365 * 86_400_000 } as const
/** Life of a host's certificate, ms, and what is left of it when it is made anew */
const hostMs = 3_600_000
const renewMs = 600_000
/** Clocks inside are the machine's own, which may be set back under a sandbox that runs, by years where they were ahead, ms */
const authorityGraceMs = { call: 86_400_000, session: authorityMs.session } as const
const hostGraceMs = 60_000

/**
 * In this order. None against quantum computers, which costs both ends a tenth of a millisecond: what a client and its daemon
 * say to each other leaves no machine.
 */
const groups = 'X25519:P-256:P-384'

const curve = { name: 'ECDSA', namedCurve: 'P-256' } as const
const signing = { name: 'ECDSA', hash: 'SHA-256' } as const

/** Signs for the hosts that it was made for. */
export interface Signer {
  /** The authority's certificate as PEM */
  readonly certificate: string
  /** What a TLS server for that host speaks with; rejects for any other host */
  contextFor(host: string): Promise<SecureContext>
}

interface Issued {
  readonly context: Promise<SecureContext>
  readonly from: number
  readonly until: number
}

/**
 * Makes an authority for exactly these hosts. Its certificate says so itself (name constraints, no authorities below it),
 * so that a client that trusts it trusts it for nothing else. `life` is how long its sandbox may run. One key serves all hosts; neither key leaves the memory.
 */
export const createSigner = async (
  server: string,
  hosts: readonly string[],
  life: keyof typeof authorityMs = 'session',
): Promise<Signer> => {
  const [authority, leaf] = await Promise.all([newKey(false), newKey(true)])
  const name = `CN=Sallyport sandbox of ${server.replaceAll(/[^A-Za-z0-9_.-]/g, '_')}`
  const bornMs = Date.now()
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serial(),
    subject: name,
    issuer: name,
    notBefore: new Date(bornMs - authorityGraceMs[life]),
    notAfter: new Date(bornMs + authorityMs[life]),
    publicKey: authority.publicKey,
    signingKey: authority.privateKey,
    signingAlgorithm: signing,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      new Extension('2.5.29.30', true, permittedNames(hosts)),
      await SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  })
  const key = KeyObject.from(leaf.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString()
  createPrivateKey(key) // fails here rather than at the first connection
  const issued = new Map<string, Issued>()

  const issue = async (host: string, from: number, until: number): Promise<SecureContext> => {
    const own = await X509CertificateGenerator.create({
      serialNumber: serial(),
      subject: 'CN=Sallyport',
      issuer: name,
      notBefore: new Date(from),
      notAfter: new Date(until),
      publicKey: leaf.publicKey,
      signingKey: authority.privateKey,
      signingAlgorithm: signing,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension([{ type: 'dns', value: host }]),
        await AuthorityKeyIdentifierExtension.create(authority.publicKey),
      ],
    })
    return createSecureContext({
      cert: own.toString('pem'),
      key,
      minVersion: 'TLSv1.2',
      ecdhCurve: groups,
      // Nobody needs another handshake within a conversation, and each costs us more than who asks for it
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    })
  }

  return {
    certificate: certificate.toString('pem'),
    async contextFor(host) {
      if (!hosts.includes(host)) throw new Error(`the authority of ${server} does not sign for ${host}`)
      const now = Date.now()
      const known = issued.get(host)
      if (known !== undefined && known.from <= now && known.until - now > renewMs) return known.context
      const [from, until] = [now - hostGraceMs, now + hostMs]
      const context = issue(host, from, until)
      issued.set(host, { context, from, until })
      return context
    },
  }
}

/** The authority's is never taken out of where it was made; a host's has to be, for TLS to have it. */
const newKey = (isTakenOut: boolean): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(curve, isTakenOut, ['sign', 'verify'])

// Positive, and not the same for two authorities of one name
const serial = (): string => `4${randomBytes(15).toString('hex').slice(1)}`

// NameConstraints ::= SEQUENCE { [0] SEQUENCE OF SEQUENCE { [2] IA5String } }, RFC 5280 4.2.1.10; no addresses at all
const permittedNames = (hosts: readonly string[]): Uint8Array<ArrayBuffer> => {
  const trees = hosts.map((host) => der(0x30, der(0x82, Buffer.from(host, 'latin1'))))
  return Uint8Array.from(der(0x30, der(0xa0, Buffer.concat(trees))))
}

const der = (tag: number, content: Buffer): Buffer => {
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
