// The denials know every home, every link out of one, and what of it is there.
import { chmodSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type DenialFacts, findDenials } from '../../../src/sandbox/mounts/denials.ts'
import { tempDir } from '../../support/temp-dir.ts'

const nothing: DenialFacts = { own: [], homes: [], environment: {} }
const pathsOf = (facts: Partial<DenialFacts>, ...sources: readonly string[]): string[] =>
  findDenials({ ...nothing, ...facts }, sources).map(({ path }) => path)

test('own homes are always looked at, other people’s where a source touches them', () => {
  const person = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([, , uid]) => uid === '0')?.[5]
  expect(person).toBe('/root')
  expect(pathsOf({}, '/srv')).not.toContain('/root/.ssh')
  for (const source of ['/root', '/root/project', '/']) expect(pathsOf({}, source)).toContain('/root/.ssh')
  expect(pathsOf({ homes: ['/srv/me'] }, '/opt')).toContain('/srv/me/.ssh')
})

test('the homes of system users, such as /usr/sbin, are no homes', () => {
  expect(pathsOf({}, '/usr').filter((path) => path.startsWith('/usr'))).toEqual([])
})

test('a denial says where it leads and whether anything is there', async () => {
  await using folder = await tempDir()
  const home = realpathSync(folder.path)
  mkdirSync(join(home, 'vault'))
  mkdirSync(join(home, '.aws'))
  symlinkSync('vault', join(home, '.ssh'))
  symlinkSync('gone', join(home, '.gnupg'))
  symlinkSync('vault', join(home, '.cargo'))
  symlinkSync('nowhere', join(home, 'vault', 'credentials'))
  writeFileSync(join(home, '.netrc'), '')
  const found = new Map(findDenials({ ...nothing, homes: [home] }, []).map((denial) => [denial.path, denial]))
  const denial = (name: string) => found.get(join(home, name))
  expect(denial('.ssh')).toMatchObject({
    real: join(home, 'vault'),
    exists: true,
    what: 'ssh and signing keys',
  })
  expect(denial('.aws')).toMatchObject({ real: join(home, '.aws'), exists: true })
  expect(denial('.netrc')).toMatchObject({ exists: true })
  expect(denial('.gnupg')).toMatchObject({ exists: false })
  expect(denial('.config/gcloud')).toMatchObject({ real: join(home, '.config/gcloud'), exists: false })
  expect(denial('.cargo/credentials')).toMatchObject({ real: join(home, 'vault/credentials'), exists: false })
})

const nobody = 65_534

/** Root may look at everything: as somebody who may not. */
const asOrdinary = <T>(look: () => T): T => {
  if (process.geteuid?.() !== 0) return look()
  process.seteuid?.(nobody)
  try {
    return look()
  } finally {
    process.seteuid?.(0)
  }
}

test('what may not be looked at is taken to be there', async () => {
  await using folder = await tempDir()
  const home = realpathSync(folder.path)
  chmodSync(home, 0o755)
  mkdirSync(join(home, '.config'))
  symlinkSync('.ssh', join(home, '.ssh'))
  chmodSync(join(home, '.config'), 0)
  const denials = asOrdinary(() => findDenials({ ...nothing, homes: [home] }, []))
  chmodSync(join(home, '.config'), 0o700)
  const found = new Map(denials.map(({ path, exists }) => [path, exists]))
  const exists = (name: string) => found.get(join(home, name))
  expect(['.config/gcloud', '.ssh', '.aws'].map(exists)).toEqual([true, true, false])
})

test('a home behind a link is denied where it really is', async () => {
  await using folder = await tempDir()
  const root = realpathSync(folder.path)
  mkdirSync(join(root, 'real/.ssh'), { recursive: true })
  symlinkSync('real', join(root, 'home'))
  const [reals, facts] = [new Set<string>(), { ...nothing, homes: [join(root, 'home')] }]
  for (const { real } of findDenials(facts, [])) reals.add(real)
  expect(reals).toContain(join(root, 'real/.ssh'))
})

test('sockets are found in addresses of every form, and no address is taken for a folder', () => {
  const environment = {
    SSH_AUTH_SOCK: '/tmp/ssh-x/agent.1',
    DOCKER_HOST: 'unix:///srv/docker.sock',
    CONTAINER_HOST: 'ssh://user@host/run/podman.sock',
    DBUS_SESSION_BUS_ADDRESS: 'unix:path=/srv/bus,guid=1;unix:abstract=/srv/abstract',
    BUILDKIT_HOST: 'tcp://127.0.0.1:1234',
    GPG_AGENT_INFO: '/srv/gpg:1:1',
    XDG_RUNTIME_DIR: '/srv/run/',
    WAYLAND_DISPLAY: 'wayland-0',
    TMUX: '/',
    HOME: '/srv/other',
  }
  const found = pathsOf({ environment }).filter(
    (path) => path.startsWith('/srv') || path.startsWith('/tmp/ssh'),
  )
  expect(found.sort()).toEqual(['/srv/bus', '/srv/docker.sock', '/srv/gpg', '/srv/run', '/tmp/ssh-x/agent.1'])
})
