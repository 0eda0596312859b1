// A shell and a person learn the same from how a server ended.
import { describe, expect, test } from 'vitest'
import type { SandboxExit } from '../../../src/sandbox/driver.ts'
import { describeExit, statusOf } from '../../../src/supervisor/instance/process-end.ts'

describe('a server that', () => {
  test.each<[string, SandboxExit, number, string]>([
    ['exits', { code: 3, signal: null, reason: 'exited' }, 3, 'it exited with status 3'],
    ['is ended by a signal', { code: null, signal: 15, reason: 'exited' }, 143, 'it was ended by signal 15'],
    ['ended, nobody knows yet how', { code: null, signal: null, reason: 'exited' }, 1, 'it ended by itself'],
    ['is killed with its tree', { code: null, signal: null, reason: 'killed' }, 137, 'it was killed'],
    [
      'runs out of memory',
      { code: null, signal: null, reason: 'oom' },
      137,
      'it was killed because it went over its memory limit',
    ],
    [
      'lost its engine',
      { code: null, signal: null, reason: 'engine-lost' },
      1,
      'the engine that its container ran on went away, and it was ended',
    ],
    [
      'never started',
      { code: null, signal: null, reason: 'exec-failed' },
      1,
      'its program could not be executed',
    ],
  ])('%s has the status and the words for it', (_title, exit, status, words) => {
    expect(statusOf(exit)).toBe(status)
    expect(describeExit(exit)).toBe(words)
  })
})
