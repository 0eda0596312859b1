// TLS on both sides: which client is spoken to, which host is believed, and what the sandbox's authority may sign.
import { webcrypto, X509Certificate } from 'node:crypto'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { describe, expect, test, vi } from 'vitest'
import { createInterceptor } from '../../../src/egress/intercept/interceptor.ts'
import { createSigner } from '../../../src/egress/intercept/signer.ts'
import { HostTrust } from '../../../src/egress/intercept/upstream.ts'
import { eventually } from '../../support/eventually.ts'
import { host, intercepted, talk, token } from '../../support/intercepted.ts'
import { tempDir } from '../../support/temp-dir.ts'
import { collect } from '../../support/collect.ts'

const run = promisify(execFile)

type Way = Awaited<ReturnType<typeof intercepted>>

/** What a handshake comes to. */
const shake = async (at: Way, options: ConnectionOptions): Promise<string> => {
  const socket = connectTls({ host: '127.0.0.1', port: at.port, ca: at.interceptor.certificate, ...options })
  const outcome = await new Promise<string>((resolve) => {
    socket.once('secureConnect', () => resolve(`${socket.alpnProtocol || 'none'} ${socket.getProtocol()}`))
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    socket.once('close', () => resolve('closed'))
  })
  socket.destroy()
  return outcome
}

const given = async (path: string, text: string): Promise<string> => {
  await writeFile(path, text)
  return path
}

describe('a client', () => {
  test.each<readonly [string, ConnectionOptions, string]>([
    ['of today', { ALPNProtocols: ['h2', 'http/1.1'] }, 'http/1.1 TLSv1.3'],
    ['of yesterday', { maxVersion: 'TLSv1.2' }, 'none TLSv1.2'],
  ])('%s is spoken to in HTTP/1.1', async (_, options, outcome) => {
    await using at = await intercepted()
    expect(await shake(at, { servername: host, ...options })).toBe(outcome)
  })

  test('that names another host is refused', async () => {
    await using at = await intercepted()
    const outcome = await shake(at, { servername: 'evil.test', checkServerIdentity: () => undefined })
    expect(outcome).not.toMatch(/TLSv/)
    await eventually(() => at.log.cut.length > 0)
    expect(at.log).toMatchObject({ cut: ['sni-mismatch'], dialled: 0 })
  })

  test('that names none is refused', async () => {
    await using at = await intercepted()
    const socket = connectTls({
      host: '127.0.0.1',
      port: at.port,
      ca: at.interceptor.certificate,
      servername: '',
      checkServerIdentity: () => undefined,
    })
    await talk(socket, 'GET / HTTP/1.1\r\n\r\n')
    expect(at.log).toMatchObject({ cut: ['sni-missing'], dialled: 0 })
  })

  test.each([
    ['speaks HTTP/2 alone', { servername: host, ALPNProtocols: ['h2'] }],
    ['does not know the authority', { servername: host, ca: [] }],
  ])('that %s gets no connection', async (_, options) => {
    await using at = await intercepted()
    expect(await shake(at, options)).not.toMatch(/TLSv/)
    await eventually(() => at.served.size === 0)
    expect(at.log.dialled).toBe(0)
  })

  test('gets no second handshake within its conversation', async () => {
    await using at = await intercepted()
    const socket = connectTls({
      host: '127.0.0.1',
      port: at.port,
      ca: at.interceptor.certificate,
      servername: host,
      maxVersion: 'TLSv1.2',
    })
    await once(socket, 'secureConnect')
    const failed = await new Promise((resolve) => {
      socket.once('error', resolve)
      socket.renegotiate({}, resolve)
    })
    expect(failed).toMatchObject({ code: 'ERR_SSL_NO_RENEGOTIATION' })
    socket.destroy()
  })

  test('that says nothing, or no TLS, is cut', async () => {
    await using at = await intercepted({ limits: { handshakeMs: 150 } })
    const silent = connect(at.port, '127.0.0.1')
    await once(silent, 'close')
    await talk(connect(at.port, '127.0.0.1'), 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await eventually(() => at.served.size === 0)
    expect(at.log).toMatchObject({ cut: ['handshake-late', 'handshake'], dialled: 0 })
  })
})

describe('a host', () => {
  const use = (at: Way) =>
    at.say(`GET / HTTP/1.1\r\nHost: ${at.authority}\r\nAuthorization: Bearer ${at.placeholder}\r\n\r\n`)

  test.each([
    ['whose certificate has run out', { certificate: { days: -1 } }, /EXPIRED/],
    ['whose certificate is for another name', { certificate: { name: 'other.test' } }, /ALTNAME/],
    ['whose authority nobody knows', { isTrusted: false }, /CERT|SIGNATURE/],
  ] as const)('%s gets no secret, and the client learns why', async (_, options, why) => {
    const had: unknown[] = []
    await using at = await intercepted({ ...options, http: (request) => had.push(request.headers) })
    using _lease = await at.lease()
    const answer = await use(at)
    expect(answer).toMatch(/^HTTP\/1\.1 502 /)
    expect(answer).toContain(`the certificate of ${host} can't be trusted`)
    expect(answer).toMatch(why)
    expect(answer).not.toContain(token)
    expect(had).toEqual([])
  })

  test('that speaks no TLS gets no secret', async () => {
    const had: string[] = []
    await using at = await intercepted({
      isHostPlain: true,
      limits: { upstreamMs: 300 },
      raw: (socket) => socket.on('data', (part: Buffer) => had.push(part.toString('latin1'))),
    })
    using _ = await at.lease()
    expect(await use(at)).toMatch(/^HTTP\/1\.1 502 /)
    // Its ClientHello, and nothing after it
    expect(had).toHaveLength(1)
    expect(had.join('')).not.toContain(token)
  })
})

describe('the authority', () => {
  test('is of a curve, and for its own hosts alone', async () => {
    await using dir = await tempDir()
    const { certificate } = await createSigner('files', ['api.example.com', 'other.example.org'])
    const path = await given(`${dir.path}/ca.pem`, certificate)
    const { stdout } = await run('openssl', ['x509', '-in', path, '-noout', '-text'])
    for (const line of [
      'prime256v1',
      'CA:TRUE, pathlen:0',
      'X509v3 Name Constraints: critical',
      'DNS:api.example.com',
      'DNS:other.example.org',
      'Certificate Sign',
      'Subject: CN = Sallyport sandbox of files',
    ])
      expect(stdout).toContain(line)
  })

  test('is another one in each sandbox, and signs for no other host', async () => {
    const [one, other] = await Promise.all([
      createSigner('files', ['a.test']),
      createSigner('files', ['a.test']),
    ])
    expect(one.certificate).not.toBe(other.certificate)
    await expect(one.contextFor('b.test')).rejects.toThrow('b.test')
  })

  test('of a sandbox for one call holds for a day, and of another for as long as any runs', async () => {
    const endOf = async (life: 'call' | 'session'): Promise<number> =>
      Date.parse(new X509Certificate((await createSigner('files', ['a.test'], life)).certificate).validTo)
    const day = 24 * 3_600_000
    expect(((await endOf('call')) - Date.now()) / day).toBeCloseTo(25 / 24, 1)
    expect((await endOf('session')) - Date.now()).toBeGreaterThan(365 * day)
  })

  test('has a key that nobody can take out, and that is gone with its sandbox', async () => {
    const made: WeakRef<webcrypto.CryptoKey>[] = []
    const { subtle } = webcrypto
    const generate = subtle.generateKey.bind(subtle)
    using looked = vi.spyOn(subtle, 'generateKey')
    looked.mockImplementation(async (...args: Parameters<typeof generate>) => {
      const pair = (await generate(...args)) as webcrypto.CryptoKeyPair
      made.push(new WeakRef(pair.privateKey))
      return pair
    })
    const lived = async (): Promise<void> => {
      await using at = await intercepted()
      expect(await shake(at, { servername: host })).toContain('TLSv1.3')
      const keys = made.map((it) => it.deref())
      // The authority's, and that of the host, in whichever order they were made
      expect(keys).toHaveLength(2)
      const own = keys.find((key) => key?.extractable === false)
      if (own === undefined) throw new Error('there is none')
      await expect(subtle.exportKey('pkcs8', own)).rejects.toThrow(/not extractable/)
    }
    await lived()
    // What it gave is remembered by it, too
    looked.mockRestore()
    await eventually(() => {
      collect()
      return made.every((it) => it.deref() === undefined)
    })
  })

  test('signs each host once, for as long as that holds', async () => {
    const signer = await createSigner('files', ['a.test', 'b.test'])
    const [first, again, other] = await Promise.all(
      ['a.test', 'a.test', 'b.test'].map((name) => signer.contextFor(name)),
    )
    expect(again).toBe(first)
    expect(other).not.toBe(first)
  })

  test('is believed by OpenSSL for its host, and its certificate for an hour', async () => {
    await using at = await intercepted()
    const socket = connectTls({
      host: '127.0.0.1',
      port: at.port,
      servername: host,
      ca: at.interceptor.certificate,
    })
    await once(socket, 'secureConnect')
    const { valid_to, subjectaltname, asn1Curve } = socket.getPeerCertificate()
    expect({ subjectaltname, asn1Curve }).toEqual({ subjectaltname: `DNS:${host}`, asn1Curve: 'prime256v1' })
    expect(Date.parse(valid_to) - Date.now()).toBeLessThan(3_600_001)
    socket.destroy()
    const { stdout } = await run('sh', [
      '-c',
      `openssl s_client -connect 127.0.0.1:${at.port} -servername ${host} -verify_hostname ${host} -CAfile ${at.bundle} -verify_return_error </dev/null 2>&1`,
    ])
    expect(stdout).toContain('Verify return code: 0 (ok)')
  })

  test('stands in the bundle behind the machine’s own', async () => {
    await using at = await intercepted()
    const { bundle, certificate } = at.interceptor
    expect(bundle.endsWith(`${certificate}\n`)).toBe(true)
    expect(bundle.match(/-----BEGIN CERTIFICATE-----/g)?.length ?? 0).toBeGreaterThan(10)
    expect(bundle).not.toContain('PRIVATE')
  })
})

describe('a session of any length', () => {
  /** What openssl makes of the host at a time, having read the authority's certificate when the sandbox began. */
  const judged = async (port: number, caFile: string, atMs: number): Promise<string> => {
    const { stdout } = await run('sh', [
      '-c',
      `openssl s_client -connect 127.0.0.1:${port} -servername ${host} -verify_hostname ${host} -CAfile ${caFile} -attime ${Math.floor(atMs / 1000)} </dev/null 2>&1`,
    ])
    return /Verify return code: .*/.exec(stdout)?.[0] ?? stdout
  }
  const hour = 3_600_000

  test.each([
    ['an hour and a half', 1.5 * hour],
    ['two days', 48 * hour],
    ['a year', 365 * 24 * hour],
    ['a clock that was set back by six hours', -6 * hour],
    ['a clock that was set back by three years', -3 * 365 * 24 * hour],
  ])('of %s keeps its hosts: their certificates are made anew, the authority is believed', async (_, ms) => {
    await using at = await intercepted()
    const path = await given(`${at.dir.path}/ca.pem`, at.interceptor.certificate)
    const bornMs = Date.now()
    expect(await judged(at.port, path, bornMs)).toBe('Verify return code: 0 (ok)')
    vi.useFakeTimers({ toFake: ['Date'], now: bornMs + ms })
    try {
      expect(await judged(at.port, path, bornMs + ms)).toBe('Verify return code: 0 (ok)')
    } finally {
      vi.useRealTimers()
    }
  })

  test('shows a host’s certificate for at most an hour, and makes it anew ten minutes before', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const signer = await createSigner('files', [host])
      const first = await signer.contextFor(host)
      vi.setSystemTime(Date.now() + 49 * 60_000)
      expect(await signer.contextFor(host)).toBe(first)
      vi.setSystemTime(Date.now() + 2 * 60_000)
      expect(await signer.contextFor(host)).not.toBe(first)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('what a host gives to take a conversation up again', () => {
  const use = (at: Way): Promise<string> =>
    at.say(`GET / HTTP/1.1\r\nHost: ${at.authority}\r\nConnection: close\r\n\r\n`)
  /** Answers with whether the connection was resumed. */
  const resumed = (request: IncomingMessage, response: ServerResponse): void =>
    void response.end(`<${(request.socket as TLSSocket).isSessionReused()}>`)

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'over %s is used for the next connection',
    async (maxVersion) => {
      await using at = await intercepted({ http: resumed, maxVersion })
      expect(await use(at)).toContain('<false>')
      expect(await use(at)).toContain('<true>')
    },
  )

  test('is not used once it is ten minutes old: the certificate is looked at anew', async () => {
    await using at = await intercepted({ http: resumed })
    vi.useFakeTimers({ toFake: ['performance'] })
    try {
      expect(await use(at)).toContain('<false>')
      vi.advanceTimersByTime(601_000)
      expect(await use(at)).toContain('<false>')
    } finally {
      vi.useRealTimers()
    }
  })

  test.each([400, -400])(
    'is ten minutes old when they have passed, though the clock jumps by %i days',
    (days) => {
      vi.useFakeTimers({ toFake: ['Date', 'performance'] })
      try {
        const trust = new HostTrust(null)
        trust.keepSession(Buffer.from('a ticket'))
        vi.setSystemTime(Date.now() + days * 86_400_000)
        vi.advanceTimersByTime(599_000)
        expect(trust.session).not.toBeNull()
        vi.advanceTimersByTime(2000)
        expect(trust.session).toBeNull()
      } finally {
        vi.useRealTimers()
      }
    },
  )

  test('stays with its sandbox', async () => {
    await using at = await intercepted({ http: resumed })
    await use(at)
    const { swap, redactor } = at.secrets
    const other = await createInterceptor({ ...at.target, life: 'session', swap, redactor })
    const door = createServer(
      (client) =>
        void other.serve(client, at.target, at.dial, {
          swapped: () => undefined,
          redacted: () => undefined,
          cut: () => undefined,
        }),
    ).listen(0, '127.0.0.1')
    await once(door, 'listening')
    const { port } = door.address() as AddressInfo
    const client = connectTls({ host: '127.0.0.1', port, servername: host, ca: other.certificate })
    const text = `GET / HTTP/1.1\r\nHost: ${at.authority}\r\nConnection: close\r\n\r\n`
    expect(await talk(client, text)).toContain('<false>')
    door.close()
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'over %s is thrown away where its certificate was not believed',
    async (maxVersion) => {
      await using at = await intercepted({ http: resumed, maxVersion, isTrusted: false })
      for (const _ of [1, 2]) expect(await use(at)).toMatch(/^HTTP\/1\.1 502 /)
      expect(at.log.dialled).toBe(2)
    },
  )
})
