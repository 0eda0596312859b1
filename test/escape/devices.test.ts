// A server has five devices, none of which is the machine's, and makes no other.
import { existsSync, readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { attempts, bare, confined, daemons, openOf } from '../support/escape.ts'

interface Reach {
  readonly dev: string[]
  readonly devices: Record<string, string>
}

const named = [
  'kmsg',
  'kvm',
  'fuse',
  'net/tun',
  'vsock',
  'vhost-vsock',
  'mem',
  'port',
  'userfaultfd',
  'snapshot',
  'mapper/control',
]
const paths = [
  ...named,
  ...readdirSync('/dev').filter((name) => /^(loop|vd|sd|nvme|tty|hwrng|rtc)/.test(name)),
].map((name) => `/dev/${name}`)
const wanted = JSON.stringify({ devices: [...paths, '/dev/null', '/dev/urandom'] })

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server finds the five harmless devices and opens no other', async () => {
    const found = JSON.parse(await confined(daemon, 'probe-reach.mjs', [wanted])) as Reach
    expect(found.dev).toEqual([
      'fd',
      'full',
      'null',
      'random',
      'shm',
      'stderr',
      'stdin',
      'stdout',
      'urandom',
      'zero',
    ])
    expect(openOf(found.devices)).toEqual(['/dev/null', '/dev/urandom'])
  })

  test('a server makes no device', async () => {
    expect(openOf(await attempts(daemon, 'devices.'))).toEqual([])
  })
})

test('bare, devices of the machine are there', async () => {
  const { dev } = JSON.parse(await bare('probe-reach.mjs', [wanted])) as Reach
  expect(dev).toContain('tty')
  expect(existsSync('/dev/tty')).toBe(true)
})
