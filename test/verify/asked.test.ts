// What is expected of a sandbox: what profile and server say, whatever a plan made of that.
import { expect, test } from 'vitest'
import type { SandboxSpec } from '../../src/sandbox/spec.ts'
import type { ProfileSettings, ServerSettings, Settings } from '../../src/schema/settings.ts'
import { mountProbes } from '../../src/verify/battery/mounts.ts'
import { privilegeProbes } from '../../src/verify/battery/privileges.ts'
import type { Scene } from '../../src/verify/probe.ts'
import { askedOf, asStated } from '../../src/verify/subject.ts'

const filesystem = {
  read: [{ path: '/usr', reason: 'r' }],
  write: [{ path: '/srv/out', reason: 'r' }],
  tmpBytes: 1000,
}
const profile = { filesystem, exec: 'none', syscalls: { allow: [] }, limits: { pids: 8 } } as unknown
const server = {
  mounts: [{ target: '/work', access: 'read' }],
  package: { target: '/code/app', with: ['/home/ann/node_modules'] },
} as unknown
const asked = askedOf({
  profile: profile as ProfileSettings,
  server: server as ServerSettings,
  settings: {} as Settings,
  isReal: true,
})
const canaries = { home: '/home/canary', word: 'canary' }
const scene = { asked, driver: 'bubblewrap', canaries, spec: { mounts: [] } } as unknown as Scene

const line = (target: string, options: string): string =>
  `1 2 8:1 /from ${target} ${options} - ext4 /dev/x rw\n`
const own =
  line('/', 'ro') + line('/proc', 'rw') + line('/dev/shm', 'rw') + line('/tmp', 'rw') + line('/usr', 'ro')

const seen = (table: string) => {
  const attempt = mountProbes
    .find(({ id }) => id === 'files.mount-table')
    ?.trial(scene)
    .attempts.find(({ label }) => label === 'mounts beyond what was asked for')
  return attempt?.meaning({ outcome: 'open', text: table, ms: 0 }).observed
}

test('a mount that neither profile nor server asks for is open, and so is one that is writable by nobody’s word', () => {
  const places = line('/work', 'ro') + line('/code/app', 'ro') + line('/code/node_modules', 'ro')
  expect(seen(own + places + line('/srv/out', 'rw') + line('/srv/out/.git', 'ro'))).toBe('as expected')
  expect(seen(own + line('/srv', 'ro'))).toBe('nobody asked for: /srv')
  expect(seen(own + line('/work', 'rw'))).toBe('nobody asked to write to: /work')
  expect(seen(own + line('/usr/local', 'rw'))).toBe('nobody asked to write to: /usr/local')
})

test('of mounts on top of each other the last one counts', () => {
  const host =
    '184 183 0:29 / /proc/sys/fs/x rw - autofs a rw\n185 184 0:37 / /proc/sys/fs/x ro - binfmt_misc b rw\n'
  const cover = '186 185 0:49 / /proc/sys/fs/x ro,nosuid,nodev - tmpfs tmpfs ro\n'
  const trial = mountProbes.find(({ id }) => id === 'files.nosuid')?.trial(scene).attempts[0]
  const found = (text: string) => trial?.meaning({ outcome: 'open', text, ms: 0 }).observed
  expect(found(host)).toBe('without nosuid: /proc/sys/fs/x')
  expect(found(host + cover)).toBe('as expected')
  expect(found(`${host}186 185 0:49 / /proc/sys/fs/x/below ro,nosuid - tmpfs tmpfs ro\n`)).toBe(
    'without nosuid: /proc/sys/fs/x',
  )
})

test('a plan that lets programs start, or gives more, is tried as its profile has it', () => {
  const planned = { exec: 'any', limits: { pids: 800, tmpBytes: 9 }, syscalls: { allow: ['bpf'] } } as unknown
  const spec = asStated(planned as SandboxSpec, profile as ProfileSettings)
  expect(spec).toEqual({ exec: 'none', syscalls: { allow: [] }, limits: { pids: 8, tmpBytes: 1000 } })
  const probe = privilegeProbes.find(({ id }) => id === 'syscalls.one-program')
  const trial = probe?.trial({ ...scene, spec: { ...spec, program: { path: '/x' } } } as Scene)
  expect([trial?.inapplicable, trial?.attempts.length]).toEqual([undefined, 1])
})
