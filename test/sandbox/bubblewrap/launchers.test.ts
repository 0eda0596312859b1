// The launcher that is started ahead: it has nothing of the daemon's, becomes the next sandbox, and outlives nobody.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { Launchers } from '../../../src/sandbox/bubblewrap/launchers.ts'
import { findInitBinary } from '../../../src/sandbox/init-binary.ts'
import type { LaunchHost } from '../../../src/sandbox/host.ts'
import { identify } from '../../../src/sandbox/proof.ts'
import { eventually } from '../../support/eventually.ts'
import { launchHost, launchProbe, settingsFor } from '../../support/launch.ts'
import { childrenOf } from '../../support/processes.ts'
import { patienceMs } from '../../support/patience.ts'

const initPath = await findInitBinary()

describe('one that waits', () => {
  test('has nothing of the daemon’s but its end of the channel and three streams', async () => {
    await using launchers = new Launchers(initPath)
    launchers.prepare()
    const pid = await waiting()
    expect(of(pid, 'environ')).toBe('')
    expect(of(pid, 'cmdline').split('\0')).toEqual(['sallyport-init', 'outer', ''])
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe('/')
    const open = (): string[] =>
      readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`).replace(/:.*/, ''))
    // Closing what was not listed is the first thing that it does.
    await eventually(() => {
      expect(open()).toEqual(['/dev/null', '/dev/null', ...Array<string>(5).fill('socket')])
      return true
    })
    expect(identify(pid)).toMatchObject({ session: pid, parent: process.pid })
  })

  test('is the only one, and one that ended is not replaced before the next is taken', async () => {
    await using launchers = new Launchers(initPath)
    launchers.prepare()
    launchers.prepare()
    const first = await waiting()
    launchers.prepare()
    process.kill(first, 'SIGKILL')
    await eventually(() => identify(first) === null)
    launchers.prepare()
    await new Promise(setImmediate)
    expect(spares()).toEqual([])
    const taken = await launchers.take(initPath)
    expect(taken.pid).not.toBe(first)
    expect(spares()).toEqual([taken.pid])
    launchers.prepare()
    await eventually(() => spares().length === 2)
    taken.kill('SIGKILL')
    await once(taken, 'exit')
  })

  test('is not given to who wants another program', async () => {
    await using launchers = new Launchers(initPath)
    launchers.prepare()
    const pid = await waiting()
    const other = await launchers.take('/bin/true')
    expect(await once(other, 'exit')).toEqual([0, null])
    expect(spares()).toEqual([pid])
  })

  test('is not taken where somebody stopped it: it ends, and another is started', async () => {
    await using launchers = new Launchers(initPath)
    launchers.prepare()
    const pid = await waiting()
    process.kill(pid, 'SIGSTOP')
    await eventually(() => stateOf(pid) === 'T')
    const taken = await launchers.take(initPath)
    expect(taken.pid).not.toBe(pid)
    await eventually(() => identify(pid) === null)
    taken.kill('SIGKILL')
    await once(taken, 'exit')
  })

  test('ends when it is not wanted any more', async () => {
    const launchers = new Launchers(initPath)
    launchers.prepare()
    const pid = await waiting()
    await launchers[Symbol.asyncDispose]()
    expect(identify(pid)).toBeNull()
    launchers.prepare()
    await new Promise(setImmediate)
    expect(spares()).toEqual([])
  })

  describe('ends with a daemon that is killed', () => {
    test('though it was stopped', async () => {
      const { daemon, pid } = await killable()
      // It sleeps nowhere but at its first order.
      await eventually(() => stateOf(pid) === 'S')
      process.kill(pid, 'SIGSTOP')
      await eventually(() => stateOf(pid) === 'T')
      daemon.kill('SIGKILL')
      try {
        await eventually(() => identify(pid) === null)
      } finally {
        if (identify(pid) !== null) process.kill(pid, 'SIGKILL')
      }
    })

    test('and is no reason for one to go on', async () => {
      const { daemon, pid } = await killable()
      daemon.kill('SIGKILL')
      await eventually(() => identify(pid) === null)
      await promisify(execFile)(process.execPath, ['--input-type=module', '-e', prepares], {
        timeout: patienceMs,
      })
    })
  })
})

describe('a launch', () => {
  test('becomes the launcher that waited, under the user that it was ordered, and another one waits then', async () => {
    await using host = await launchHost()
    const pid = await waiting()
    await using server = await launched(host)
    expect(identify(server.initPid)?.parent).toBe(pid)
    expect(of(pid, 'cmdline')).toMatch(/^bwrap\0/)
    const { hostUid, hostGid } = server.spec
    for (const part of [pid, server.initPid]) {
      expect(of(part, 'status')).toMatch(new RegExp(`^Uid:(\t${hostUid}){4}$`, 'm'))
      expect(of(part, 'status')).toMatch(new RegExp(`^Gid:(\t${hostGid}){4}$`, 'm'))
    }
    expect(hostUid).toBeGreaterThan(0)
    expect(await waiting()).not.toBe(pid)
  })

  test('starts a launcher of its own where the one that waited was killed', async () => {
    await using host = await launchHost()
    const pid = await waiting()
    process.kill(pid, 'SIGKILL')
    await eventually(() => identify(pid) === null)
    await using server = await launched(host)
    expect(server.initPid).toBeGreaterThan(0)
    expect(identify(server.initPid)?.parent).not.toBe(pid)
  })
})

const module = new URL('../../../src/sandbox/bubblewrap/launchers.ts', import.meta.url).href
const prepares = `
  import { Launchers } from ${JSON.stringify(module)}
  new Launchers(${JSON.stringify(initPath)}).prepare()`

/** A process with a launcher that waits, which a test may kill. */
const killable = async () => {
  const staying = ['--input-type=module', '-e', `${prepares}\nsetInterval(() => {}, 1000)`]
  const daemon = spawn(process.execPath, staying, { stdio: 'ignore' })
  return { daemon, pid: await eventually(() => childrenOf(daemon.pid ?? 0).find(isSpare) ?? false) }
}

const launched = async (host: LaunchHost) => launchProbe(await settingsFor('echo.mjs', []), host)

const of = (pid: number, file: string): string => readFileSync(`/proc/${pid}/${file}`, 'utf8')

const stateOf = (pid: number): string | undefined => /^State:\s*(\w)/m.exec(of(pid, 'status'))?.[1]

const isSpare = (pid: number): boolean =>
  identify(pid) !== null && of(pid, 'cmdline') === 'sallyport-init\0outer\0'
const spares = (): readonly number[] => childrenOf(process.pid).filter(isSpare)

/** The one that waits; whoever asks starts no other. */
const waiting = (): Promise<number> =>
  eventually(() => {
    const [pid, ...more] = spares()
    return pid !== undefined && more.length === 0 && pid
  })
