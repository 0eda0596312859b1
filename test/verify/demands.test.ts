// What is demanded of a server's processes, held against processes that no sandbox holds: every demand must go red.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Inspection } from '../../src/verify/result.ts'
import { look, type Sight } from '../../src/verify/server/look.ts'
import { givenDemands, placeDemands, statusDemands } from '../../src/verify/server/demands.ts'
import { fileDemands } from '../../src/verify/server/files-demands.ts'
import { namespaceKinds, processesOf } from '../../src/verify/server/processes.ts'
import { mountOf, planOf } from '../support/plan.ts'
import { tempDir } from '../support/temp-dir.ts'

const demands = [...placeDemands, ...statusDemands, ...fileDemands, ...givenDemands]
const word = 'canary-of-a-test'
// Its own child is the server, as PID 1's is: it listens, has a file for a stream and a variable that nobody planned.
const server = `require('node:net').createServer().listen(0, '127.0.0.1', () => process.stdout.write('up'))`

let parent: ChildProcess
let sight: Sight
let folder: Awaited<ReturnType<typeof tempDir>>

beforeAll(async () => {
  folder = await tempDir()
  const file = openSync(join(folder.path, 'stream'), 'w')
  parent = spawn('/bin/sh', ['-c', '"$0" -e "$1" & wait', process.execPath, server], {
    stdio: ['ignore', 'pipe', file],
    env: { LEAKED: word },
  })
  closeSync(file)
  if (parent.stdout !== null) await once(parent.stdout, 'data')
  const { spec } = await planOf(['/usr/bin/planned'])
  sight = {
    // As a sandbox's would be, and not as these are.
    spec: { ...spec, hostUid: 47_000, hostGid: 47_000, limits: { ...spec.limits, openFiles: 8 } },
    driver: 'bubblewrap',
    enforcedBy: { memory: 'cgroup-v2', pids: 'cgroup-v2', cpu: 'cgroup-v2', files: 'rlimit', tmp: 'tmpfs' },
    processes: processesOf(parent.pid ?? 0),
    ownNamespaces: Object.fromEntries(
      namespaceKinds.map((kind) => [kind, readlinkSync(`/proc/self/ns/${kind}`)]),
    ),
    ownGroups: readFileSync('/proc/self/cgroup', 'utf8'),
    ownFilters: Number(
      /^Seccomp_filters:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0,
    ),
    secretNames: [],
    word,
  }
})

afterAll(async () => {
  for (const { pid } of sight.processes.toReversed()) process.kill(pid, 'SIGKILL')
  await folder[Symbol.asyncDispose]()
})

test('the two processes are seen, PID 1 first', () => {
  expect(sight.processes.map(({ pid, parent: above }) => [pid, above])).toEqual([
    [parent.pid, process.pid],
    [expect.any(Number), parent.pid],
  ])
})

describe('outside of any sandbox is red:', () => {
  // Some machines set this bit for all, and then a process without a sandbox has it too.
  const isSetForAll = /^NoNewPrivs:\s+1/m.test(readFileSync('/proc/self/status', 'utf8'))
  describe.each(['bubblewrap', 'docker'] as const)('with what is demanded under %s', (driver) => {
    test.each(demands)('$id', (demand) => {
      const expected = demand.id === 'process.no-new-privileges' && isSetForAll ? 'pass' : 'fail'
      expect([demand.id, look(demand, { ...sight, driver }).verdict]).toEqual([demand.id, expected])
    })
  })
})

describe('a process is told by what it runs, whatever it calls itself:', () => {
  const planned = '/sallyport/bin/node'
  const titled = `process.title = 'files 1.2'; process.stdout.write('up')\nsetInterval(() => {}, 1000)`
  const arms = [
    ['the planned program under a title of its own', process.execPath, ['-e', titled], 'pass'],
    ['another program under the planned one’s name', '/bin/sh', ['-c', 'echo up; read line'], 'fail'],
  ] as const

  const started = async (program: string, args: readonly string[]): Promise<Sight> => {
    // PID 1 is its parent, as in a sandbox.
    const script = `const [program, argv0, ...args] = process.argv.slice(1)
      require('node:child_process').spawn(program, args, { argv0, stdio: 'inherit' })`
    const init = spawn(process.execPath, ['-e', script, '--', program, planned, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    await once(init.stdout, 'data')
    const processes = processesOf(init.pid ?? 0).map((each, index) => ({ ...each, innerPid: index + 1 }))
    for (const { pid } of processes.toReversed()) process.kill(pid, 'SIGKILL')
    const { spec } = await planOf([planned], { spec: { mounts: [mountOf(process.execPath, planned)] } })
    return { ...sight, spec, processes }
  }
  const inspected = (seen: Sight): Inspection => {
    const tree = placeDemands.find(({ id }) => id === 'process.tree')
    if (tree === undefined) throw new Error('no such demand')
    return look(tree, seen)
  }

  test.each(arms)('%s', async (_, program, args, verdict) => {
    const seen = await started(program, args)
    expect(seen.processes).toHaveLength(2)
    expect(inspected(seen)).toMatchObject({
      verdict,
      observed: expect.stringContaining(verdict === 'pass' ? 'so it is' : 'it runs /usr/bin/'),
    })
    const isHidden = {
      ...seen,
      processes: seen.processes.map((each) => ({ ...each, runs: { unread: 'EACCES' } })),
    }
    expect(inspected(isHidden).verdict).toBe('error')
  })

  test('a server where a relay was to be', async () => {
    const seen = await started('/bin/sh', ['-c', 'echo up; read line'])
    const [init, server] = seen.processes
    if (init === undefined || server === undefined) throw new Error('no process')
    const door = mountOf('/dev/null', '/door')
    const network = { mode: 'allowlist', door, grants: [], proxyPort: 1, pool: 1 } as const
    const processes = [init, server, { ...server, pid: 1, runs: init.runs }]
    const { verdict, observed } = inspected({ ...seen, spec: { ...seen.spec, network }, processes })
    expect([verdict, observed]).toEqual(['fail', expect.stringMatching(/^pid \d+ \(2 inside\) .*it runs /)])
  })
})

test('a file is no stream of the server’s own, and one of a child’s that the server gave it', () => {
  const [, started] = sight.processes
  const demand = fileDemands.find(({ id }) => id === 'process.descriptors')
  if (started === undefined || demand === undefined) throw new Error('no process')
  const isIn = (mount: number) => [0, 1, 2].map((fd) => ({ fd, leadsTo: '/dev/null', mount }))
  const mounts = '7 1 0:1 / /dev/null rw - tmpfs none rw'
  const own = { ...started, mounts, descriptors: [] }
  const withStreams = (...streams: readonly ReturnType<typeof isIn>[]) =>
    look(demand, {
      ...sight,
      processes: [own, ...streams.map((descriptors) => ({ ...started, mounts, descriptors }))],
    })
  expect(withStreams([], isIn(7)).verdict).toBe('pass')
  expect(withStreams(isIn(7)).observed).toContain('streams that are files')
  expect(withStreams([], isIn(8)).observed).toContain('open outside of the sandbox')
})

describe('is an error, never a pass:', () => {
  test.each(demands)('$id of a sandbox in which no server was seen', (demand) => {
    for (const processes of [[], sight.processes.slice(0, 1)]) {
      const { verdict } = look(demand, {
        ...sight,
        processes,
        spec: { ...sight.spec, hostUid: process.getuid?.() ?? 0 },
      })
      expect(verdict).not.toBe('pass')
    }
  })

  test.each([
    'namespaces',
    'groups',
    'limits',
    'mounts',
    'descriptors',
    'environment',
    'sockets',
    'idMaps',
  ] as const)('a server’s %s that the kernel keeps from us', (part) => {
    const [first, ...rest] = sight.processes
    if (first === undefined) throw new Error('no process')
    const hide = (process: (typeof rest)[number]) => ({ ...process, [part]: { unread: 'EACCES' } })
    const hidden = { ...sight, processes: [hide(first), ...rest.map(hide)] }
    const blind = demands
      .map((demand) => look(demand, hidden))
      .filter(({ observed }) => observed.includes('EACCES'))
    expect(blind.map(({ verdict }) => verdict).filter((verdict) => verdict !== 'error')).toEqual([])
    expect(part === 'idMaps' || blind.length > 0).toBe(true)
  })
})
