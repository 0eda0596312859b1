// All of it on the oldest Node that is promised, which has less than the one that the repo brings: globals, methods, options.
import { once } from 'node:events'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { configOf, fixture, place, serve } from '../support/daemon.ts'
import { type OldestNode, oldestNode } from '../support/oldest-node.ts'

let node: OldestNode
beforeAll(async () => {
  node = await oldestNode()
}, 120_000)
afterAll(() => node[Symbol.asyncDispose]())

test('a daemon and its command line serve, call, show and prove what they do', async () => {
  const pooled = fixture('echo', { instance: 'call', pool: { size: 1 } })
  await using at = await place(configOf({ echo: fixture('echo'), pooled }), node.path)
  const daemon = await serve(at)
  await using _client = daemon.client
  for (const [args, said] of [
    [['doctor'], `on node ${node.version}`],
    [['test', 'echo'], 'tools/list   ok'],
    [['call', 'echo', 'echo', '-a', 'message=in'], 'in'],
    [['call', 'pooled', 'echo', '-a', 'message=out'], 'out'],
    [['tools'], 'echo'],
    [['ps'], 'echo'],
    [['explain', 'echo', 'echo'], 'allow'],
    [['trust', 'list'], 'echo/echo@'],
    [['reload'], ''],
    [['audit', 'verify'], 'the journal is whole'],
    [['profile', 'list'], 'offline'],
  ] as const)
    expect({ args, ...(await at.run(args)) }).toMatchObject({
      args,
      status: 0,
      stdout: expect.stringContaining(said),
    })
  // It would cut a path off that is too long for a socket, and take what is left.
  const deep = join(at.folder, 'd'.repeat(90))
  await mkdir(deep)
  const { stdout } = await at.run(['doctor'], { env: { TMPDIR: deep } })
  expect(stdout).toContain('takes no socket (ENAMETOOLONG)')
  expect(await readdir(deep)).toEqual([])
  const ended = once(daemon.process, 'exit')
  daemon.process.kill('SIGTERM')
  expect(await ended).toEqual([0, null])
})

test('a verification holds, with doors, credentials and all', async () => {
  await using at = await place(configOf({}), node.path)
  const child = at.start(['verify', '--profile', 'allowlisted-egress'])
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (bytes: Buffer) => (said += bytes.toString()))
  const [status] = (await once(child, 'close')) as [number]
  expect({ status, said }).toMatchObject({
    status: 0,
    said: expect.stringMatching(/^(ok|WARN) +allowlisted-egress: .* probes held/m),
  })
})
