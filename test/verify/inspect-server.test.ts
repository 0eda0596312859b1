// A real server each of whose calls has a sandbox of its own: what is looked at is the one that answers, and none is left.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { thisHost } from '../../src/config/host.ts'
import { settingsOf } from '../../src/config/load.ts'
import { runOne } from '../../src/daemon/run-one.ts'
import { silent } from '../../src/lib/logger.ts'
import { plantCanaries } from '../../src/verify/lab/canaries.ts'
import { startJanitor } from '../../src/verify/lab/janitor.ts'
import { inspectServer } from '../../src/verify/server/inspect-server.ts'
import { subjectOfServer } from '../../src/verify/subject.ts'
import { configOf, fixture } from '../support/daemon.ts'
import { tempDir } from '../support/temp-dir.ts'

test('a call in a sandbox of its own is looked for when all is over, and the server that answers is looked at', async () => {
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
  const { inspections } = await inspectServer(
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
    { canaries: planted.canaries, kernel: 'host', signal: AbortSignal.timeout(60_000) },
  )
  const found = new Map(inspections.map(({ id, ...inspection }) => [id, inspection]))
  expect(inspections.filter(({ verdict }) => verdict !== 'pass' && verdict !== 'not-applicable')).toEqual([])
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
