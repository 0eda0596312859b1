// The frames of the network from the hostile side: what is malformed, doubled, missing or too much ends the launch with 125.
import { describe, expect, it } from 'vitest'
import { arch } from 'node:process'
import { compileWatched } from '../../../src/sandbox/seccomp.ts'
import { frame } from '../../support/init-frames.ts'
import { buildInit, InitProcess, outcome, outerOrders } from '../../support/init-sandbox.ts'

const binary = buildInit()
const door = frame('D', '/sallyport/egress', 3128, 256)
const name = frame('N', 443, 'api.example.test')
const watched = frame(
  'W',
  compileWatched({ base: 'strict', allow: [], deny: [] }, arch === 'arm64' ? arch : 'x64'),
)
const report = frame('r')
const long = `${'x'.repeat(63)}.`.repeat(4)

const malformed: Readonly<Record<string, readonly [readonly Uint8Array[], RegExp]>> = {
  'a name without a door': [[name, report], /door: missing/],
  'a door twice': [[door, door], /given twice/],
  'a door that is relative': [[frame('D', 'egress', 3128, 0)], /not an absolute path/],
  'a door longer than a socket’s path': [
    [frame('D', `/${'x'.repeat(107)}`, 3128, 0)],
    /not an absolute path/,
  ],
  'a door without NUL': [[frame('D', Buffer.from('/x'))], /without its NUL/],
  'a door without a port': [[frame('D', '/x')], /too short/],
  'a door without a pool': [[frame('D', '/x', 1)], /too short/],
  'a door with more': [[frame('D', '/x', 1, 1, 1)], /too long/],
  'proxy port 0': [[frame('D', '/x', 0, 0)], /not a port/],
  'proxy port 65536': [[frame('D', '/x', 65_536, 0)], /not a port/],
  'a pool of 257': [[frame('D', '/x', 1, 257)], /more than 256/],
  'a name at port 0': [[frame('N', 0, 'a.test')], /not a port/],
  'a name at port 65536': [[frame('N', 65_536, 'a.test')], /not a port/],
  'a name without NUL': [[frame('N', 443, Buffer.from('a.test'))], /without its NUL/],
  'a name without a port': [[frame('N', 1)], /without its NUL/],
  'a name with more': [[frame('N', 443, 'a.test', 'b.test')], /too long/],
  'a name twice': [[door, name, name], /granted twice/],
  'a wildcard without a pool': [
    [frame('D', '/x', 1, 0), watched, frame('N', 443, '*.a.test'), report],
    /needs a pool/,
  ],
  'a door without the watched filter': [[door, report], /go together/],
  'the watched filter without a door': [[watched, report], /go together/],
  'the watched filter twice': [[watched, watched], /given twice/],
  'a watched filter of no instruction': [[frame('W')], /not 1 to 4096/],
  'a watched filter that ends within one': [[frame('W', Buffer.alloc(12))], /not 1 to 4096/],
  'a watched filter of 4097': [[frame('W', Buffer.alloc(4097 * 8))], /not 1 to 4096/],
  'a watched filter that the kernel does not take': [
    [door, frame('W', Buffer.alloc(8, 0xff)), report],
    /egress: /,
  ],
  'the watched filter after the report': [[report, watched], /out of order/],
  'a wildcard of one label': [[frame('N', 443, '*.test')], /less than two labels/],
  'every name': [[frame('N', 443, '*')], /not a lower-case host name/],
  'a wildcard inside': [[frame('N', 443, 'a.*.test')], /not a lower-case host name/],
  'two wildcards': [[frame('N', 443, '*.*.a.test')], /not a lower-case host name/],
  'upper case': [[frame('N', 443, 'A.test')], /not a lower-case host name/],
  'an empty name': [[frame('N', 443, '')], /not a lower-case host name/],
  'an empty label': [[frame('N', 443, 'a..test')], /not a lower-case host name/],
  'a dot at the end': [[frame('N', 443, 'a.test.')], /not a lower-case host name/],
  'a label of 64': [[frame('N', 443, `${'x'.repeat(64)}.test`)], /not a lower-case host name/],
  'a name of 256': [[frame('N', 443, long.slice(0, 255))], /not a lower-case host name/],
  'an address': [[frame('N', 443, '127.0.0.1')], /not a lower-case host name/],
  'a space': [[frame('N', 443, 'a.test 443')], /not a lower-case host name/],
  'a newline': [[frame('N', 443, 'a.test\nSP1')], /not a lower-case host name/],
  'more than 512 names': [
    [door, Buffer.concat(Array.from({ length: 513 }, (_, index) => frame('N', 1 + index, 'a.test')))],
    /more than 512/,
  ],
  'more listeners than there is room for': [
    [
      door,
      watched,
      Buffer.concat(Array.from({ length: 9 }, (_, index) => frame('N', 1 + index, '*.a.test'))),
      report,
    ],
    /more than 2048/,
  ],
  'a door after the report': [[report, door], /out of order/],
  'a name after the report': [[report, name], /out of order/],
  'a door at which nobody listens': [[door, watched, name, report], /egress: /],
}

describe('init', () => {
  it.each(Object.entries(malformed))('refuses %s', async (_, [frames, reason]) => {
    const capabilities = ['SYS_RESOURCE', 'SETPCAP', 'NET_ADMIN', 'NET_BIND_SERVICE', 'NET_RAW'].map(
      (it) => `CAP_${it}`,
    )
    await using process = new InitProcess(binary, ['outer']).send(...outerOrders({ capabilities }), ...frames)
    const { code, diagnostics, reports } = await outcome(process)
    expect({ code, diagnostics }).toEqual({
      code: 125,
      diagnostics: expect.stringMatching(/^sallyport-init: [^\n]+\n$/),
    })
    expect(diagnostics).toMatch(reason)
    expect(reports.map(({ type }) => type)).not.toContain('S')
  })

  it.each([
    ['CAP_NET_ADMIN', /CAP_NET_ADMIN/],
    ['CAP_NET_RAW', /CAP_NET_RAW/],
    ['CAP_NET_BIND_SERVICE', /resolver|listener/],
  ])('refuses where the sandbox tool left it without %s', async (missing, reason) => {
    const all = ['SYS_RESOURCE', 'SETPCAP', 'NET_ADMIN', 'NET_RAW', 'NET_BIND_SERVICE'].map(
      (it) => `CAP_${it}`,
    )
    const capabilities = all.filter((capability) => capability !== missing)
    await using process = new InitProcess(binary, ['outer']).send(
      ...outerOrders({ capabilities }),
      door,
      watched,
      name,
      report,
    )
    const { code, diagnostics } = await outcome(process)
    expect(code).toBe(125)
    expect(diagnostics).toMatch(/^sallyport-init: egress: /)
    expect(diagnostics).toMatch(reason)
  })
})
