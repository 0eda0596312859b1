// What takes its time is no failure, and what does not come at all is neither a failure nor a pass: nobody knows how busy a machine is.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { SandboxProcess } from '../../src/sandbox/driver.ts'
import type { ControlId } from '../../src/verify/arms/controls.ts'
import { left } from '../../src/verify/server/steps.ts'
import type * as Verify from '../../src/verify/verify.ts'
import { type Change, otherBuild } from '../support/other-build.ts'
import { tempDir } from '../support/temp-dir.ts'

const [lab, wayOut] = ['verify/lab/try.js', 'verify/lab/way-out.js']

/** What becomes of the probes of these controls in a build in which something is otherwise: verdict and what was observed. */
const verdictsIn = async (
  changes: readonly Change[],
  controls: readonly ControlId[],
  selfCheck = false,
): Promise<Readonly<Record<string, string>>> => {
  await using home = await tempDir()
  await using build = await otherBuild(...changes)
  const { verifyProfile } = build.load('verify/verify.js') as typeof Verify
  const host = { env: { LANG: 'C.UTF-8' }, home: home.path, uid: process.getuid?.() ?? -1 }
  const { probes } = await verifyProfile('allowlisted-egress', {
    host,
    controls,
    selfCheck,
    isTriedOnce: true,
  })
  return Object.fromEntries(probes.map(({ id, verdict, observed }) => [id, `${verdict}: ${observed}`]))
}

const later = (ms: number, done: string): string => `setTimeout(() => ${done}, ${ms})`

/** A PID 1 that gets no turn for that long, whatever happens to its sandbox meanwhile. */
const stopped = (ms: number): string =>
  `process.kill(server.initPid, 'SIGSTOP'); ${later(ms, "process.kill(server.initPid, 'SIGCONT')")};`

test('an end, a word or a door that comes late has come', async () => {
  const slow: readonly Change[] = [
    [lab, 'lab.kills ? server.kill() :', `lab.kills ? ${later(6000, 'server.kill()')} :`],
    [lab, 'abandon: () => server.abandon()', `abandon: () => { ${stopped(4000)} server.abandon(); }`],
    [lab, 'process.kill(relay.pid, by)', `{ ${stopped(6000)} process.kill(relay.pid, by); }`],
    [
      wayOut,
      'reasons.push(reason, `${reason} ${host}`, `${reason} ${host}:${port}`)',
      later(6000, 'reasons.push(reason, `${reason} ${host}`, `${reason} ${host}:${port}`)'),
    ],
    ['egress/door.js', "passage.cut('door-closed')", later(4000, "passage.cut('door-closed')")],
    [
      'egress/door.js',
      'socket.destroy();\n        await promise',
      `${later(4000, 'socket.destroy()')};\n        await promise`,
    ],
  ]
  const found = await verdictsIn(slow, ['end', 'orphan-end', 'relay-end', 'told', 'doors'])
  expect(Object.entries(found).filter(([, verdict]) => !verdict.startsWith('pass'))).toEqual([])
  expect(Object.keys(found)).toHaveLength(6)
})

test('what never comes is an error that says so', async () => {
  const never: readonly Change[] = [
    ['verify/lab/patience.js', 'ampleMs = 30_000', 'ampleMs = 1_000'],
    [lab, 'terminate: () => server.terminate()', 'terminate: () => undefined'],
    [lab, 'abandon: () => server.abandon()', 'abandon: () => undefined'],
    [lab, 'process.kill(relay.pid, by)', 'relay.pid'],
    [wayOut, 'reasons.push(reason, `${reason} ${host}`, `${reason} ${host}:${port}`)', 'host.length'],
  ]
  const found = await verdictsIn(never, ['end', 'orphan-end', 'relay-end', 'told'])
  expect(found).toEqual({
    'resources.end': 'error: asked to end, then ended: it did not hear that it was to end, 1000 ms later',
    'resources.abandoned': 'error: left by its supervisor: it goes on, 1000 ms later',
    'network.relay-end': 'error: the relay, killed from outside: the sandbox goes on, 1000 ms later',
    'network.relay-stop': 'error: the relay, stopped from outside: the sandbox goes on, 1000 ms later',
    'network.told': expect.stringMatching(
      /^error: what the door heard: nothing of name-not-listed, .*, 1000 ms later$/,
    ),
  })
})

test('what comes late with a control is waited for longer without it', async () => {
  const slow: readonly Change[] = [
    [lab, 'lab.kills ? server.kill() :', `lab.kills ? ${later(2000, 'server.kill()')} :`],
  ]
  const found = await verdictsIn(slow, ['end'], true)
  expect(found).toEqual({ 'resources.end': 'pass: as expected' })
})

test('a process that is gone a while after its server is not left', async () => {
  const child = spawn('/bin/sleep', ['3'])
  await once(child, 'spawn')
  const spec = { mounts: [], files: [], network: { mode: 'none' } }
  const process = { initPid: child.pid, spec } as unknown as SandboxProcess
  const found = await left([{ process, groups: [] }], { status: 0, reason: null })
  expect([found.verdict, found.observed]).toEqual(['pass', 'nothing is left; it ended with status 0'])
})
