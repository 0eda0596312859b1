// Unmodified programs in a sandbox with an allowlist, through a whole daemon: what each reaches, with and without proxy variables.
import { dirname } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { fixture, type Place, serve } from '../support/daemon.ts'
import { openTestServers, type TestServers } from '../support/egress-servers.ts'
import { buildGoProbe, buildProbe, hasGo } from '../support/probe.ts'
import { callThrough, reachingPlace, recordsAbout } from '../support/reaching-out.ts'

let servers: TestServers
let at: Place
let client: Client

const [host, git, address] = ['api.example.test', 'git.example.test', '127.0.0.1']
const tools = dirname(buildProbe('dial'))
const withGo = hasGo()
if (withGo) buildGoProbe('fetch')

beforeAll(async () => {
  servers = await openTestServers()
  const entry = { address, private: true, reason: 'the API' }
  const allow = [
    { host, port: servers.https, ...entry },
    { host: git, port: servers.https, ...entry },
    { host, port: servers.http, ...entry },
  ]
  const mounts = [
    { source: servers.trusted, target: '/trusted', access: 'read', reason: 'its authority' },
    { source: tools, target: '/tools', access: 'read', reason: 'the programs' },
  ]
  at = await reachingPlace({ runs: fixture('runs', { profile: 'open', egress: allow, mounts }) }, { allow })
  ;({ client } = await serve(at))
})
afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await at[Symbol.asyncDispose]()
  await servers[Symbol.asyncDispose]()
})

const node = '"$(readlink /proc/$PPID/exe)"'
const ca = '/trusted/ca.pem'
const url = (): string => `https://${host}:${servers.https}/`

const programs: Readonly<Record<string, () => string>> = {
  'Node’s fetch': () =>
    `NODE_EXTRA_CA_CERTS=${ca} ${node} -e 'fetch("${url()}").then(async (r) => process.stdout.write(await r.text()))'`,
  'Node’s https': () =>
    `NODE_EXTRA_CA_CERTS=${ca} ${node} -e 'require("https").get("${url()}", (r) => r.pipe(process.stdout))'`,
  'Python’s urllib': () =>
    `SSL_CERT_FILE=${ca} python3 -c 'import urllib.request as u; print(u.urlopen("${url()}").read().decode(), end="")'`,
  curl: () => `curl -sS --cacert ${ca} ${url()}`,
  'git, which clones over https': () =>
    `rm -rf it; GIT_SSL_CAINFO=${ca} git clone -q https://${git}:${servers.https}/repo.git it && git -C it log --format='hello from %s'`,
  'a static C program': () => `/tools/dial ${host} ${servers.http} | tail -1`,
  ...(withGo ? { 'a static Go program': () => `SSL_CERT_FILE=${ca} /tools/fetch ${url()}` } : {}),
}

describe.each([
  ['no proxy variable', 'unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy NO_PROXY NODE_USE_ENV_PROXY; '],
  ['the environment that a server is given', ''],
])('with %s', (_, prepare) => {
  test.each(Object.entries(programs))('%s', async (_name, script) => {
    const before = recordsAbout(at, 'egress.connected', 'runs').length
    const said = await callThrough(() => client)('runs', 'run', { script: `${prepare}${script()}` })
    expect(said).toEqual({ stdout: expect.stringMatching(/^hello from .+\n$/), stderr: '' })
    expect(recordsAbout(at, 'egress.connected', 'runs').length).toBeGreaterThan(before)
  })

  test('and none of them another host', async () => {
    const before = recordsAbout(at, 'egress.refused', 'runs').length
    const script = `${prepare}curl -sS -m 5 https://elsewhere.example.test/; ${node} -e 'fetch("https://elsewhere.example.test/").catch(({ cause }) => console.log("failed"))'`
    const { stdout, stderr } = await callThrough(() => client)('runs', 'run', { script })
    expect(stdout).toBe('failed\n')
    expect(stderr).toMatch(/^curl: /)
    expect(recordsAbout(at, 'egress.refused', 'runs').length).toBeGreaterThan(before)
  })
})
