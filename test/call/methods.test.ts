import { expect, test } from 'vitest'
import { methods, route } from '../../src/call/methods.ts'
import { governedMethods } from '../../src/schema/governed-methods.ts'

test.each([
  '__proto__',
  'constructor',
  'toString',
  '',
  'tools/call ',
  'Tools/call',
  'notifications/initialized',
])('the request %j is not in the table', (method) => {
  expect(route('host', 'request', method)).toBe('refuse')
})

test('no method passes in a direction or shape that is not its own', () => {
  for (const sender of ['host', 'server'] as const) {
    for (const shape of ['request', 'notification'] as const) {
      for (const method of Object.keys(methods[sender][shape])) {
        const isNotification = method.startsWith('notifications/')
        expect(isNotification).toBe(shape === 'notification')
        expect(route(sender, isNotification ? 'request' : 'notification', method)).toBe('refuse')
      }
    }
  }
  expect(route('server', 'request', 'tools/call')).toBe('refuse')
  expect(route('host', 'request', 'sampling/createMessage')).toBe('refuse')
})

test('what rules may name beside tools is what is governed by rules', () => {
  const governed = Object.entries(methods.host.request).filter(([, way]) => way === 'govern')
  expect(governed.map(([method]) => method)).toEqual(governedMethods)
})
