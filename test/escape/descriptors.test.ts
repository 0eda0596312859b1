// A server has three streams, all of them sockets, and no other descriptor.
import { describe, expect, test } from 'vitest'
import { confined, daemons } from '../support/escape.ts'

describe.each(daemons)('under a daemon of %s', (daemon) => {
  test('a server starts with stdin, stdout and stderr, none of them a terminal or a file of the host', async () => {
    const listing = await confined(daemon, 'probe-exec.mjs', ['/bin/ls', '-l', '/proc/self/fd'])
    const links = [...listing.matchAll(/ (\d+) -> (\S+)/g)].map(([, fd, link]) => [
      Number(fd),
      link?.replace(/\d+/g, 'N'),
    ])
    // The last is the folder that ls itself has open.
    expect(links).toEqual([
      [0, 'socket:[N]'],
      [1, 'socket:[N]'],
      [2, 'socket:[N]'],
      [3, '/proc/N/fd'],
    ])
  })

  test('a server cannot open its stdout again to get at a file behind it', async () => {
    const script = 'echo x > /proc/self/fd/1 || echo closed'
    expect(await confined(daemon, 'probe-exec.mjs', ['/bin/sh', '-c', script])).toBe('closed\n')
  })
})
