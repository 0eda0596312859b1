// The observer by itself, on a process that is in no sandbox: what it looks for there and does not find is no end.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { findObserveBinary } from '../../../src/sandbox/init-binary.ts'
import { isRoot } from '../../support/user.ts'

/** Whether a user may trace a process of his that he did not start from the one that traces; no such file is no such limit. */
const mayTrace = (): boolean => {
  try {
    return readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'utf8').trim() === '0'
  } catch {
    return true
  }
}

test.runIf(isRoot || mayTrace())(
  'a sample that finds nothing where it looks ends neither the observer nor what it watches',
  async () => {
    // No folder of a sandbox is in its root; it waits for longer than the observer does between two samples.
    const watched = spawn('/bin/sh', ['-c', 'read -r word; sleep 0.5; exit 7'], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    const ended = once(watched, 'exit')
    const observer = spawn(await findObserveBinary(), [String(watched.pid)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said = text(observer.stdout)
    await once(observer.stdout, 'readable')
    watched.stdin.end('go\n')
    expect(await ended).toEqual([7, null])
    expect(await said).toMatch(/^ready\n[^]*peaks\t/)
  },
)
