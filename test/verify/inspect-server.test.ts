// A real server each of whose calls has a sandbox of its own: what is looked at is the one that answers, and none is left.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { thisHost } from '../../src/config/host.ts'
import { settingsOf } from '../../src/config/load.ts'
import { runOne } from '../../src/daemon/run-one.ts'
import { silent } from '../../src/lib/logger.ts'
import { detectCgroups } from '../../src/sandbox/cgroup/level.ts'
import { plantCanaries } from '../../src/verify/lab/canaries.ts'
import { startJanitor } from '../../src/verify/lab/janitor.ts'
import { inspectServer } from '../../src/verify/server/inspect-server.ts'
import type * as InspectServer from '../../src/verify/server/inspect-server.ts'
import type { Inspection } from '../../src/verify/result.ts'
import { subjectOfServer } from '../../src/verify/subject.ts'
import { configOf, fixture } from '../support/daemon.ts'
import { otherBuild } from '../support/other-build.ts'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

/** Looks at a server whose calls have a sandbox each, by an inspection that may be another build's. */
const inspected = async (inspect: typeof inspectServer) => {
  await using folder = await tempDir()
  const home = join(folder.path, 'home')
  await mkdir(home)
  await using janitor = await startJanitor()
  await using planted = await plantCanaries(home, janitor)
  const host = { ...thisHost(), home }
  const config = configOf({ echo: fixture('echo', { instance: 'call' }) })
  const settings = await settingsOf(config, folder.path, host)
  const launched: { readonly instance: string; readonly initPid: number }[] = []
  const call = { tool: 'echo', args: { text: 'a' } }
  const { inspections } = await inspect(
    subjectOfServer(settings, 'echo'),
    {
      host,
      call,
      run: ({ watch, ...given }, waiting) =>
        runOne(
          {
            ...given,
            runtimeDir: folder.path,
            log: silent,
            watch: {
              ...watch,
              launched(process) {
                launched.push({ instance: process.spec.instance, initPid: process.initPid })
                watch.launched(process)
              },
            },
          },
          waiting,
        ),
    },
    { canaries: planted.canaries, kernel: 'host', signal: AbortSignal.timeout(patienceMs) },
  )
  const notPassed = inspections.filter(({ verdict }) => verdict !== 'pass' && verdict !== 'not-applicable')
  return { launched, notPassed, found: new Map(inspections.map(({ id, ...rest }) => [id, rest])) }
}

test('a call in a sandbox of its own is looked for when all is over, and the server that answers is looked at', async () => {
  const { launched, notPassed, found } = await inspected(inspectServer)
  expect(notPassed).toEqual([])
  expect(launched.length).toBe(2)
  expect(found.get('server.started')?.observed).toBe(`pid ${launched[0]?.initPid} on the host`)
  expect(found.get('process.tree')?.evidence[0]).toMatch(
    new RegExp(`^pid ${launched[0]?.initPid} \\(1 inside\\)`),
  )
  // To a user without a control group of his own there is none to be gone.
  const grouped = found.get('process.cgroup')?.verdict === 'pass' ? launched : []
  const gone = found.get('server.gone')?.evidence.join('\n') ?? ''
  expect(launched.filter(({ instance }) => gone.includes(instance))).toEqual(grouped)
})

const lines = (inspections: readonly Inspection[]): readonly string[] =>
  inspections.map(({ id, verdict, observed }) => `${id} ${verdict}: ${observed}`)

test('where /proc does not say which processes there are, nobody knows what they have, nor whether any is left', async () => {
  await using build = await otherBuild(['verify/server/processes.js', '${name}/status', '${name}/status/'])
  const other = build.load('verify/server/inspect-server.js') as typeof InspectServer
  const { notPassed } = await inspected(other.inspectServer)
  expect(lines(notPassed)).toEqual([
    'process.tree error: its processes could not be looked at (ENOTDIR)',
    'server.gone error: which control groups it had could not be read (ENOTDIR)',
  ])
})

test.runIf(detectCgroups().bases.memory !== null)(
  'a control group that may not be looked at is not gone',
  async () => {
    await using build = await otherBuild(['verify/server/steps.js', '(path, ', "(path.padEnd(5000, 'x'), "])
    const other = build.load('verify/server/inspect-server.js') as typeof InspectServer
    const { notPassed } = await inspected(other.inspectServer)
    expect(lines(notPassed)).toEqual([
      expect.stringMatching(/^server.gone error: what is left of it could not be seen: .*ENAMETOOLONG/),
    ])
  },
)
