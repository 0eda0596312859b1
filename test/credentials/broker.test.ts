// Leases: what a placeholder stands for, when, where, and for nothing after.
import { chmod, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createBroker } from '../../src/credentials/broker.ts'
import { newInstanceId } from '../../src/lib/ids.ts'
import type {
  CredentialSource,
  CredentialViolation,
  Injection,
  LeaseRequest,
} from '../../src/schema/credentials.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { eventually } from '../support/eventually.ts'
import { expectRefusal } from '../support/refusal.ts'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

const uid = process.getuid?.() ?? 0
const initPath = await findInitBinary()
const api = { host: 'api.example.com', port: 443 }
const elsewhere = { host: 'evil.example.net', port: 443 }
const authorization = { in: 'header', name: 'authorization' } as const
/** As long as each wait may take, counted from where it begins */
const waiting = {
  get signal() {
    return AbortSignal.timeout(patienceMs)
  },
}

const injection = (use: string, more: Partial<Injection> = {}): Injection => ({
  use,
  inject: 'egress',
  as: use.toUpperCase(),
  hosts: [{ ...api, caFile: null }],
  headers: ['authorization'],
  query: false,
  body: false,
  websocket: false,
  placeholder: { prefix: '', length: 40 },
  ...more,
})

const values: Record<string, string> = {
  ONE: 'secret-one-0123456789',
  TWO: 'secret-two-0123456789',
  SHORT: 'short',
}
const variable = (name: string): CredentialSource => ({ kind: 'env', variable: name })

const sandbox = (
  injections: readonly Injection[],
  {
    environment = values,
    sources = { one: variable('ONE'), two: variable('TWO'), short: variable('SHORT') },
  } = {},
) => {
  const violations: CredentialViolation[] = []
  const broker = createBroker({ sources, environment, uid, initPath })
  const secrets = broker.forSandbox({
    server: 'files',
    instance: newInstanceId(),
    injections,
    violated: (violation) => violations.push(violation),
  })
  let calls = 0
  const lease = (names: readonly string[], more: Partial<LeaseRequest> = {}, until = waiting) => {
    const call = `c${++calls}`
    return secrets.lease(
      { permit: `p-${call}`, call, names, deadlineMs: 20_000, attribution: 'window', ...more },
      until,
    )
  }
  return {
    broker,
    secrets,
    lease,
    violations,
    swap: secrets.swap,
    placeholder: secrets.environment['ONE'] ?? '',
  }
}

describe('a placeholder', () => {
  test('stands for the secret in its header, for its host and port, while a lease is open; never else', async () => {
    const { swap, placeholder, lease, violations } = sandbox([injection('one')])
    expect(swap.swap(placeholder, api, authorization)).toMatchObject({ state: 'blocked', reason: 'no-lease' })
    const open = await lease(['one'])
    expect(swap.swap(placeholder, api, authorization)).toMatchObject({ state: 'live', value: values['ONE'] })
    expect(swap.swap(placeholder, api, { in: 'basic' }).state).toBe('live')
    for (const [target, place, reason] of [
      [elsewhere, authorization, 'other-host'],
      [{ ...api, port: 8443 }, authorization, 'other-host'],
      [api, { in: 'header', name: 'x-copy' }, 'other-place'],
      [api, { in: 'query' }, 'other-place'],
      [api, { in: 'body' }, 'other-place'],
      [api, { in: 'elsewhere' }, 'other-place'],
    ] as const)
      expect(swap.swap(placeholder, target, place)).toMatchObject({ state: 'blocked', reason })
    open.end()
    expect(swap.swap(placeholder, api, authorization)).toMatchObject({ state: 'blocked', reason: 'no-lease' })
    expect(violations.map(({ reason }) => reason)).toEqual([
      'no-lease',
      'other-host',
      'other-host',
      ...Array.from({ length: 4 }, () => 'other-place'),
      'no-lease',
    ])
    expect(JSON.stringify(violations)).not.toContain(values['ONE'])
  })

  test('stands for it in query and body where the entry says so', async () => {
    const { swap, placeholder, lease } = sandbox([
      injection('one', { query: true, body: true, headers: ['x-key'] }),
    ])
    using open = await lease(['one'])
    for (const place of [{ in: 'query' }, { in: 'body' }, { in: 'header', name: 'x-key' }] as const)
      expect(swap.swap(placeholder, api, place).state).toBe('live')
    for (const place of [authorization, { in: 'basic' }] as const)
      expect(swap.swap(placeholder, api, place).state).toBe('blocked')
    expect(open.exposed).toBe(false)
  })

  test('is dead for good when its sandbox is gone, and its leases are over', async () => {
    const { swap, placeholder, lease, secrets } = sandbox([injection('one')])
    const open = await lease(['one'])
    secrets[Symbol.dispose]()
    expect(open.ended.aborted).toBe(true)
    expect(swap.swap(placeholder, api, authorization)).toMatchObject({ state: 'blocked', reason: 'no-lease' })
    await expectRefusal(() => lease(['one']), 'ERR_CREDENTIAL_REFUSED', 'gone')
  })

  test('is another one in each sandbox, and means nothing in the other', async () => {
    const [one, other] = [sandbox([injection('one')]), sandbox([injection('one')])]
    expect(one.placeholder).not.toBe(other.placeholder)
    using _ = await other.lease(['one'])
    expect(() => other.swap.swap(one.placeholder, api, authorization)).toThrow('does not have')
  })
})

describe('a lease', () => {
  test('ends at its deadline', async () => {
    const { swap, placeholder, lease } = sandbox([injection('one')])
    const open = await lease(['one'], { deadlineMs: 60 })
    await eventually(() => open.ended.aborted)
    expect(swap.swap(placeholder, api, authorization).state).toBe('blocked')
  })

  test('gives only what its call named', async () => {
    const { swap, lease, secrets } = sandbox([
      injection('one'),
      injection('two', { hosts: [{ ...elsewhere, caFile: null }] }),
    ])
    using open = await lease(['two'])
    expect(open.names).toEqual(['two'])
    expect(swap.swap(secrets.environment['ONE'] ?? '', api, authorization).state).toBe('blocked')
    expect(swap.swap(secrets.environment['TWO'] ?? '', elsewhere, authorization).state).toBe('live')
  })

  test('delivers by request, variable and file, says that the value is inside, and gives nothing when it is over', async () => {
    const { lease, secrets } = sandbox([
      injection('one', { inject: 'meta', as: 'token' }),
      injection('two', { inject: 'env', as: 'API_TOKEN' }),
      injection('short', { inject: 'file', as: 'PIN_FILE' }),
    ])
    const open = await lease(['one', 'two', 'short'], { attribution: 'call' })
    expect(secrets.environment).toEqual({})
    expect(open).toMatchObject({
      exposed: true,
      attribution: 'call',
      permit: 'p-c1',
      names: ['one', 'two', 'short'],
    })
    expect(open.meta()).toEqual({ token: values['ONE'] })
    expect(open.environment()).toEqual({ API_TOKEN: values['TWO'] })
    const [file] = open.files()
    expect(file).toMatchObject({ name: 'PIN_FILE', variable: 'PIN_FILE' })
    expect(Buffer.from(file?.content ?? []).toString()).toBe('short')
    open.end()
    expect([open.meta(), open.environment(), open.files()]).toEqual([null, {}, []])
  })

  test('is refused for a credential that the server was not given', async () => {
    const { lease } = sandbox([injection('one')])
    await expectRefusal(() => lease(['two']), 'ERR_CREDENTIAL_REFUSED', 'two', 'files')
  })

  test('never has two secrets for one target', async () => {
    const { lease } = sandbox([injection('one'), injection('two', { headers: ['x-other'] })])
    await expectRefusal(
      () => lease(['one', 'two']),
      'ERR_CREDENTIAL_REFUSED',
      'one and two',
      'api.example.com:443',
    )
  })

  test('waits in turn while another secret is open for its target', async () => {
    const { lease, swap, secrets } = sandbox([injection('one'), injection('two')])
    const [one, two] = [secrets.environment['ONE'] ?? '', secrets.environment['TWO'] ?? '']
    const states = () => [one, two].map((it) => swap.swap(it, api, authorization).state)
    const first = await lease(['one'])
    const opened: string[] = []
    const note = (name: string) => async (open: Promise<{ end(): void }>) => {
      const it = await open
      opened.push(name)
      return it
    }
    const second = note('second')(lease(['two']))
    const third = note('third')(lease(['one']))
    await new Promise(setImmediate)
    expect([opened, states()]).toEqual([[], ['live', 'blocked']])
    first.end()
    ;(await second).end()
    expect(opened).toEqual(['second'])
    ;(await third).end()
    expect(states()).toEqual(['blocked', 'blocked'])
  })

  test('is given up when it waits too long, without keeping whoever waits behind it', async () => {
    const { lease } = sandbox([injection('one'), injection('two')])
    using _ = await lease(['one'])
    const second = lease(['two'], {}, { signal: AbortSignal.timeout(80) })
    const third = lease(['one'])
    await expectRefusal(() => second, 'ERR_CREDENTIAL_BUSY')
    using open = await third
    expect(open.ended.aborted).toBe(false)
  })

  test('of the same secret is shared by calls at once, and what one swapped is over when all have ended', async () => {
    const { lease, swap, placeholder } = sandbox([injection('one')])
    const until = () => {
      const swapped = swap.swap(placeholder, api, authorization)
      return swapped.state === 'live' ? swapped.until : AbortSignal.abort()
    }
    const first = await lease(['one'])
    const ofFirst = until()
    const second = await lease(['one'])
    const ofBoth = until()
    first.end()
    expect([ofFirst.aborted, ofBoth.aborted]).toEqual([true, false])
    second.end()
    expect(ofBoth.aborted).toBe(true)
  })

  test('reads its source anew, and never mixes the old value with the new', async () => {
    await using dir = await tempDir()
    await chmod(dir.path, 0o700)
    const path = `${dir.path}/token`
    const write = (value: string) => writeFile(path, value, { mode: 0o600 })
    await write('before-0123456789')
    const { lease, swap, placeholder } = sandbox([injection('one')], {
      sources: { one: { kind: 'file', path } } as never,
    })
    const first = await lease(['one'])
    await write('after-0123456789ab')
    const second = lease(['one'])
    expect(swap.swap(placeholder, api, authorization)).toMatchObject({ value: 'before-0123456789' })
    first.end()
    using _ = await second
    expect(swap.swap(placeholder, api, authorization)).toMatchObject({ value: 'after-0123456789ab' })
  })

  test('leaves nothing open when a source fails', async () => {
    const { lease, swap, placeholder } = sandbox([injection('one'), injection('short', { hosts: [] })])
    await expectRefusal(() => lease(['one', 'short']), 'ERR_CREDENTIAL_REFUSED', 'short', '16')
    expect(swap.swap(placeholder, api, authorization).state).toBe('blocked')
  })
})

describe('what was handed out', () => {
  test('is redacted in what the sandbox says, during the lease and after it', async () => {
    const { lease, secrets, broker } = sandbox([injection('one')])
    const said = `token=${values['ONE']}`
    expect(secrets.redactor.redact(said).found).toEqual([])
    const open = await lease(['one'])
    expect(secrets.redactor.redact(said).text).toBe('token=[redacted:one]')
    open.end()
    secrets[Symbol.dispose]()
    expect(secrets.redactor.redact(said).text).toBe('token=[redacted:one]')
    expect(broker.redactor.redact(said).text).toBe('token=[redacted:one]')
  })

  test('is known to the broker for every sandbox, and to a sandbox for its own alone', async () => {
    const broker = createBroker({
      sources: { one: variable('ONE'), two: variable('TWO') },
      environment: values,
      uid,
      initPath,
    })
    const given = { server: 's', violated: () => undefined }
    const [one, two] = [injection('one'), injection('two')].map((it) =>
      broker.forSandbox({ ...given, instance: newInstanceId(), injections: [it] }),
    )
    const request = { permit: 'p', call: 'c', deadlineMs: 9999, attribution: 'window' } as const
    await one?.lease({ ...request, names: ['one'] }, waiting)
    await two?.lease({ ...request, names: ['two'] }, waiting)
    const both = `${values['ONE']} ${values['TWO']}`
    expect(broker.redactor.redact(both).text).toBe('[redacted:one] [redacted:two]')
    expect(one?.redactor.redact(both).text).toBe(`[redacted:one] ${values['TWO']}`)
  })

  test('is looked for in what goes up, unless the sandbox was given it', async () => {
    const { lease, swap, violations } = sandbox([
      injection('one'),
      injection('two', { inject: 'env', hosts: [] }),
    ])
    using _ = await lease(['one', 'two'])
    expect(swap.watch(api, 'passes')(Buffer.from(`x=${values['ONE']}`))).toBe('value')
    expect(swap.watch(api, 'passes')(Buffer.from(`x=${values['TWO']}`))).toBeNull()
    expect(violations).toEqual([{ credential: 'one', ...api, reason: 'value', place: null }])
  })
})

describe('probing', () => {
  test('names every source that fails, and keeps no value', async () => {
    const { broker } = sandbox([], {
      sources: { one: variable('ONE'), two: variable('GONE'), short: variable('ALSO_GONE') },
    })
    const all = (...uses: readonly string[]) => uses.map((use) => ({ use, inject: 'egress' as const }))
    await broker.probe(all('one'), waiting)
    expect(broker.redactor.redact(values['ONE'] ?? '').found).toEqual([])
    await expectRefusal(
      () => broker.probe(all('one', 'two', 'short', 'unknown'), waiting),
      'ERR_CREDENTIAL_SOURCE',
      'GONE',
      'ALSO_GONE',
      'unknown',
    )
  })

  test('refuses what could not be swapped, and takes it for another way', async () => {
    const { broker } = sandbox([])
    const probe = (inject: 'egress' | 'meta') => broker.probe([{ use: 'short', inject }], waiting)
    await probe('meta')
    await expectRefusal(() => probe('egress'), 'ERR_CREDENTIAL_REFUSED', 'short', '16')
  })
})
