import { expect, test } from 'vitest'
import {
  hostState,
  type InstanceEvent,
  InvalidTransition,
  next,
  transitions,
} from '../../../src/supervisor/instance/states.ts'
import type { InstanceState } from '../../../src/rpc/protocol.ts'

const events: readonly InstanceEvent[] = [
  'start',
  'ready',
  'drain',
  'stop',
  'ended',
  'back-off',
  'fail',
  'need-auth',
  'quarantine',
  'release',
  'disable',
  'enable',
]

const allowed: Readonly<Record<InstanceState, Partial<Record<InstanceEvent, InstanceState>>>> = {
  stopped: {
    start: 'starting',
    'back-off': 'backoff',
    fail: 'failed',
    'need-auth': 'needs-auth',
    quarantine: 'quarantined',
    disable: 'disabled',
  },
  starting: {
    ready: 'ready',
    drain: 'draining',
    stop: 'stopping',
    ended: 'stopped',
    'back-off': 'backoff',
    fail: 'failed',
    'need-auth': 'needs-auth',
    quarantine: 'quarantined',
  },
  ready: {
    drain: 'draining',
    stop: 'stopping',
    ended: 'stopped',
    'back-off': 'backoff',
    fail: 'failed',
    quarantine: 'quarantined',
  },
  draining: { stop: 'stopping', ended: 'stopped' },
  stopping: { ended: 'stopped', fail: 'failed' },
  backoff: {
    start: 'starting',
    ended: 'stopped',
    fail: 'failed',
    quarantine: 'quarantined',
    disable: 'disabled',
  },
  failed: { start: 'starting', ended: 'stopped', quarantine: 'quarantined', disable: 'disabled' },
  quarantined: { release: 'stopped', disable: 'disabled' },
  disabled: { enable: 'stopped' },
  'needs-auth': { start: 'starting', ended: 'stopped', quarantine: 'quarantined', disable: 'disabled' },
}

const states = Object.keys(transitions) as InstanceState[]
const pairs = states.flatMap((state) => events.map((event) => [state, event] as const))

test.each(pairs)('%s, %s', (state, event) => {
  const to = allowed[state][event]
  if (to !== undefined) expect(next(state, event)).toBe(to)
  else expect(() => next(state, event)).toThrow(new InvalidTransition(state, event))
})

test('an illegal pair names both', () => {
  expect(() => next('quarantined', 'start')).toThrow(
    expect.objectContaining({ from: 'quarantined', event: 'start' }),
  )
})

test('nothing but a release leads out of quarantine to a start', () => {
  expect(next(next('quarantined', 'release'), 'start')).toBe('starting')
})

test('stopped is reported only of what has ended', () => {
  for (const [state, event] of pairs) {
    if (state === 'stopping' && allowed[state][event] === 'stopped') expect(event).toBe('ended')
  }
})

test('hosts see five states', () => {
  expect(Object.fromEntries(states.map((state) => [state, hostState(state)]))).toEqual({
    starting: 'pending',
    ready: 'connected',
    draining: 'connected',
    stopping: 'pending',
    stopped: 'pending',
    backoff: 'pending',
    failed: 'failed',
    quarantined: 'failed',
    disabled: 'disabled',
    'needs-auth': 'needs-auth',
  })
})
