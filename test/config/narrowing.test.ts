// Narrowing as a relation: reflexive, transitive, and a child that it accepts can never do what its parent cannot.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { coversHost, keyRules, liesWithin } from '../../src/config/narrowing.ts'
import { mergeLayers } from '../../src/config/profile.ts'
import type { Profile } from '../../src/schema/types.gen.ts'
import { validate } from '../../src/schema/validate.ts'

const some = <T>(values: readonly T[]) => fc.uniqueArray(fc.constantFrom(...values), { maxLength: 3 })
const grants = fc.uniqueArray(
  fc
    .constantFrom('/', '/usr', '/usr/lib', '/usr/lib/x', '/usrlocal', '/etc', '/etc/ssl')
    .map((path) => ({ path, reason: 'r' })),
  { maxLength: 2, selector: ({ path }) => path },
)
const amount = fc.constantFrom(1, 2, 3).map((times) => times * 16_777_216)
const firmness = fc.constantFrom('required', 'best-effort')
const host = fc.record({
  host: fc.constantFrom(
    'a.example.com',
    'b.example.com',
    '*.example.com',
    '*.a.example.com',
    'example.com',
    'notexample.com',
  ),
  port: fc.constantFrom(80, 443),
  address: fc.constantFrom(null, '192.0.2.1', '192.0.2.2'),
  private: fc.boolean(),
  reason: fc.constant('r'),
})
const pass = fc.constantFrom('LANG', 'TZ', { name: 'GITHUB_TOKEN', override: 'why' })

/** Whatever a profile's file may state, each key stated or not. */
const stated = fc.record(
  {
    version: fc.constant(1),
    name: fc.constant('p'),
    filesystem: fc.record(
      {
        read: grants,
        write: grants,
        mounts: fc.constantFrom('none', 'read', 'write'),
        tmp_bytes: amount,
        home: fc.constant('private'),
      },
      { requiredKeys: [] },
    ),
    network: fc.record(
      { mode: fc.constantFrom('none', 'allowlist'), allow: fc.array(host, { maxLength: 2 }) },
      { requiredKeys: [] },
    ),
    credentials: some(['egress', 'meta', 'file', 'env']),
    exec: fc.constantFrom('any', 'none'),
    environment: fc.record(
      {
        pass: fc.uniqueArray(pass, { maxLength: 2 }),
        set: fc.dictionary(fc.constantFrom('A', 'B'), fc.constantFrom('1', '2'), {
          maxKeys: 2,
          noNullPrototype: true,
        }),
      },
      { requiredKeys: [] },
    ),
    syscalls: fc.record(
      { allow: some(['ptrace', 'bpf']), deny: some(['read', 'ptrace']) },
      { requiredKeys: [] },
    ),
    limits: fc.record(
      {
        memory_bytes: amount,
        pids: fc.constantFrom(8, 16),
        cpu: fc.constantFrom(0.5, 1),
        open_files: fc.constantFrom(64, 128),
        file_bytes: amount,
        enforcement: fc.record(
          { memory: firmness, cpu: firmness, pids: firmness, files: firmness },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: ['version', 'name'] },
)

interface Layer {
  readonly document: { readonly value: unknown }
  readonly profile: Profile
}

function layerOf(value: unknown): Layer {
  const validated = validate('profile', value)
  if (!validated.ok) throw new Error(JSON.stringify(validated.problems))
  return { document: { value }, profile: validated.value }
}

const whole = stated.map((value) => layerOf(value).profile)
const isNarrower = (child: Profile, parent: Profile): boolean =>
  keyRules.every(({ wider }) => wider(child, parent).length === 0)

/** One or two keys of another profile, as a child would state them. */
const patch = fc.record({
  from: whole,
  rules: fc.uniqueArray(fc.constantFrom(...keyRules), { minLength: 1, maxLength: 2 }),
})
type Patch = typeof patch extends fc.Arbitrary<infer T> ? T : never

function patched(profile: Profile, { from, rules }: Patch): Profile {
  const result = structuredClone(profile)
  for (const { path } of rules) put(result, path, at(from, path))
  return result
}

function partial({ from, rules }: Patch): object {
  const result: Record<string, unknown> = { version: 1, name: 'p' }
  for (const { path } of rules) {
    let holder = result
    for (const step of path.slice(0, -1)) holder = (holder[step] ??= {}) as Record<string, unknown>
    holder[path.at(-1) ?? ''] = at(from, path)
  }
  return result
}

/** Every single thing that a profile lets a server have, as a flat set of facts. */
function powers({
  filesystem,
  network,
  credentials,
  exec,
  environment,
  syscalls,
  limits,
}: Profile): Set<string> {
  const paths = [
    '/',
    '/usr',
    '/usr/lib',
    '/usr/lib/x',
    '/usrlocal',
    '/usrlocal/y',
    '/etc',
    '/etc/ssl',
    '/etc/shadow',
    '/home',
  ]
  const hosts = ['a.example.com', 'b.example.com', 'x.a.example.com', 'example.com', 'notexample.com', 'com']
  const within = (list: readonly { path: string }[], path: string) =>
    list.some((grant) => liesWithin(path, grant.path))
  const ranks = { mounts: ['none', 'read', 'write'].indexOf(filesystem.mounts) }
  const amounts = {
    tmp: filesystem.tmp_bytes,
    mounts: ranks.mounts,
    memory: limits.memory_bytes,
    pids: limits.pids,
    cpu: limits.cpu,
    files: limits.open_files,
    size: limits.file_bytes,
  }
  return new Set([
    ...paths
      .filter((path) => within([...filesystem.read, ...filesystem.write], path))
      .map((path) => `read ${path}`),
    ...paths.filter((path) => within(filesystem.write, path)).map((path) => `write ${path}`),
    ...(network.mode === 'none' ? [] : hosts).flatMap((name) =>
      [80, 443].flatMap((port) =>
        [false, true].flatMap((isPrivate) =>
          network.allow
            .filter((entry) => coversHost(entry, { host: name, port }) && (entry.private || !isPrivate))
            .map(({ address }) => `connect ${name}:${port} ${address} ${isPrivate}`),
        ),
      ),
    ),
    ...credentials.map((kind) => `inject ${kind}`),
    ...(exec === 'any' ? ['exec'] : []),
    ...environment.pass.map((entry) => `pass ${JSON.stringify(entry)}`),
    ...Object.entries(environment.set).map(([name, value]) => `set ${name} ${JSON.stringify(value)}`),
    ...['read', 'ptrace', 'bpf']
      .filter((name) => !syscalls.deny.includes(name) && (name === 'read' || syscalls.allow.includes(name)))
      .map((name) => `call ${name}`),
    ...Object.entries(amounts).flatMap(([name, most]) =>
      [0.5, 1, 2, 8, 16, 64, 128, 16_777_216, 33_554_432, 50_331_648, 67_108_864]
        .filter((each) => each <= most)
        .map((each) => `${name} ${each}`),
    ),
    ...Object.entries(limits.enforcement)
      .filter(([, firm]) => firm === 'best-effort')
      .map(([name]) => `soft ${name}`),
  ])
}

describe('narrowing', () => {
  test('is reflexive: a profile is no wider than itself', () => {
    fc.assert(fc.property(whole, (profile) => isNarrower(profile, profile)))
  })

  test('is transitive: what is narrower than something narrower is narrower', () => {
    let accepted = 0
    fc.assert(
      fc.property(whole, patch, patch, (c, toB, toA) => {
        const [b, a] = [patched(c, toB), patched(patched(c, toB), toA)]
        if (!isNarrower(a, b) || !isNarrower(b, c)) return
        accepted += 1
        expect(isNarrower(a, c)).toBe(true)
      }),
      { numRuns: 1_500 },
    )
    expect(accepted).toBeGreaterThan(150)
  })

  test('a child that it accepts has no power that its parent lacks, over every chain', () => {
    let accepted = 0
    fc.assert(
      fc.property(stated, patch, patch, (root, middle, own) => {
        const layers = [partial(own), partial(middle), root].map(layerOf)
        const [child, parent] = [mergeLayers(layers), mergeLayers(layers.slice(1))]
        if (!isNarrower(child, parent)) return
        accepted += 1
        const above = powers(parent)
        expect([...powers(child)].filter((power) => !above.has(power))).toEqual([])
      }),
      { numRuns: 1_500 },
    )
    expect(accepted).toBeGreaterThan(150)
  })

  test('without any one of its rows, a child gets through that should not', () => {
    const constant = ['filesystem.home', 'syscalls.base']
    const rows = keyRules.filter(({ path }) => !constant.includes(path.join('.')))
    for (const removed of rows) {
      const rest = keyRules.filter((rule) => rule !== removed)
      const holds = fc.check(
        fc.property(whole, whole, (parent, other) => {
          const child = structuredClone(parent)
          put(child, removed.path, at(other, removed.path))
          // A network that is off hides its list.
          if (removed.path[0] === 'network') child.network.mode = parent.network.mode
          if (removed.path.join('.') === 'network.mode') child.network.mode = other.network.mode
          if (!rest.every(({ wider }) => wider(child, parent).length === 0)) return true
          const above = powers(parent)
          return [...powers(child)].every((power) => above.has(power))
        }),
        { numRuns: 1_500 },
      )
      expect(holds.failed, removed.path.join('.')).toBe(true)
    }
  })
})

test.each([
  ['/usr', '/usr', true],
  ['/usr/lib', '/usr', true],
  ['/usrlocal', '/usr', false],
  ['/usr', '/usr/lib', false],
  ['/anything', '/', true],
])('%s within %s: %s', (path, folder, expected) => {
  expect(liesWithin(path, folder)).toBe(expected)
})

test.each([
  ['*.example.com', 'a.example.com', true],
  ['*.example.com', 'b.a.example.com', true],
  ['*.example.com', '*.a.example.com', true],
  ['*.example.com', 'example.com', false],
  ['*.example.com', 'notexample.com', false],
  ['*.a.example.com', '*.example.com', false],
  ['a.example.com', '*.example.com', false],
])('%s covers %s: %s', (above, name, expected) => {
  const entry = (named: string) => ({ host: named, port: 443 })
  expect(coversHost(entry(above), entry(name))).toBe(expected)
  expect(coversHost({ ...entry(above), port: 80 }, entry(name))).toBe(false)
})

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], value)
}

function put(target: object, path: readonly string[], value: unknown): void {
  const holder = at(target, path.slice(0, -1)) as Record<string, unknown>
  holder[path.at(-1) ?? ''] = structuredClone(value)
}
