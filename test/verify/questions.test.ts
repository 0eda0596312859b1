// What an answer of the probes' program comes to for each kind of stated line: the verdict, what was seen, and what is told of it.
import { expect, test } from 'vitest'
import { parseAssertion } from '../../src/schema/assertion.ts'
import type { EgressEvent } from '../../src/schema/egress.ts'
import type { ProfileSettings } from '../../src/schema/settings.ts'
import { questionOf } from '../../src/verify/stated/questions.ts'

const profileWith = (mode: string): ProfileSettings =>
  ({
    network: { mode },
    limits: { memoryBytes: 1000, pids: 8, openFiles: 32, fileBytes: 500 },
    filesystem: { tmpBytes: 700 },
  }) as unknown as ProfileSettings

const event = (more: Partial<EgressEvent>): EgressEvent => ({
  kind: 'refused',
  connection: 'c',
  host: 'a.test',
  port: 443,
  address: null,
  verdict: 'refused',
  reason: 'name-not-listed',
  bytesUp: 0,
  bytesDown: 0,
  durationMs: 1,
  swapped: [],
  redacted: [],
  count: 1,
  ...more,
})
const heard = event({
  kind: 'closed',
  verdict: 'connected',
  address: '192.0.2.1',
  reason: null,
  bytesUp: 5,
  bytesDown: 27,
})
const lookedUp = event({ port: null })
const other = event({ host: 'b.test' })

type Row = readonly [
  line: string,
  answer: readonly [outcome: string, text: string],
  doors: readonly EgressEvent[],
  verdict: string,
  observed: string,
  evidence: readonly string[],
]

const paths = '/a: ENOENT\n1 tried: 0 open, 1 shut'
const told = ['/a: ENOENT', '1 tried: 0 open, 1 shut']
const inside = 'inside: a.test:443 dialled: '
const atDoor = 'at the door: refused name-not-listed, 0 bytes up, 0 down'
const atHost = 'at the door: closed 192.0.2.1, 5 bytes up, 27 down'
const rows: readonly Row[] = [
  ['cannot read /a', ['ENOENT', paths], [], 'pass', 'ENOENT', told],
  ['can read /a', ['ENOENT', paths], [], 'fail', 'ENOENT', told],
  ['can write /a', ['open', paths], [], 'pass', 'open', told],
  ['cannot exec /a', ['open', paths], [], 'fail', 'open', told],
  [
    'cannot connect a.test:443',
    ['EPERM', '192.0.2.9, '],
    [other, event({})],
    'pass',
    'not a byte reached it: name-not-listed',
    [`${inside}EPERM, 192.0.2.9`, atDoor],
  ],
  [
    'cannot connect a.test:443',
    ['ENOENT', ''],
    [lookedUp],
    'pass',
    'not a byte reached it: ENOENT',
    [`${inside}ENOENT`, 'at the door: nothing came'],
  ],
  [
    'cannot connect a.test:443',
    ['late', 'x'],
    [heard],
    'fail',
    'it was dialled',
    [`${inside}late, x`, atHost],
  ],
  ...['connect-timeout', 'dns-timeout', 'connect-failed:econnrefused', 'client-left'].map((reason): Row => [
    'cannot connect a.test:443',
    ['ECONNRESET', 'x'],
    [event({ verdict: 'failed', reason })],
    'error',
    `nothing refused it: ${reason}`,
    [`${inside}ECONNRESET, x`, `at the door: refused ${reason}, 0 bytes up, 0 down`],
  ]),
  [
    'cannot connect a.test:443',
    ['ECONNRESET', 'x'],
    [event({ reason: 'hello-timeout' })],
    'error',
    'nothing refused it: hello-timeout',
    [`${inside}ECONNRESET, x`, 'at the door: refused hello-timeout, 0 bytes up, 0 down'],
  ],
  [
    'cannot connect a.test:443',
    ['ECONNRESET', 'x'],
    [event({}), event({ verdict: 'failed', reason: 'dns-timeout' })],
    'error',
    'nothing refused it: dns-timeout',
    [`${inside}ECONNRESET, x`, atDoor, 'at the door: refused dns-timeout, 0 bytes up, 0 down'],
  ],
  ...['ETIMEDOUT', 'ECONNRESET', 'killed', 'EMFILE'].map((outcome): Row => [
    'cannot connect a.test:443',
    [outcome, 'x'],
    [],
    'error',
    `nothing refused it: ${outcome}`,
    [`${inside}${outcome}, x`, 'at the door: nothing came'],
  ]),
  ...['address-refused:loopback', 'no-door', 'port-not-listed', 'name-invalid'].map((reason): Row => [
    'cannot connect a.test:443',
    ['ECONNRESET', 'x'],
    [event({ reason })],
    'pass',
    `not a byte reached it: ${reason}`,
    [`${inside}ECONNRESET, x`, `at the door: refused ${reason}, 0 bytes up, 0 down`],
  ]),
  [
    'can connect a.test:443',
    ['ECONNRESET', 'x'],
    [event({ verdict: 'failed', reason: 'connect-timeout' })],
    'error',
    'it came to nothing: connect-timeout',
    [`${inside}ECONNRESET, x`, 'at the door: refused connect-timeout, 0 bytes up, 0 down'],
  ],
  ...['killed', 'EIO', 'ENOMEM'].flatMap((outcome) =>
    ['cannot read /a', 'can read /a'].map((line): Row => [
      line,
      [outcome, ''],
      [],
      'error',
      `it came to nothing: ${outcome}`,
      [],
    ]),
  ),
  ['can connect a.test:443', ['open', 'x'], [heard], 'pass', 'bytes came back', [`${inside}open, x`, atHost]],
  [
    'can connect a.test:443',
    ['open', 'x'],
    [event({})],
    'fail',
    'answered by the door, not by the host',
    [`${inside}open, x`, atDoor],
  ],
  ['can connect a.test:443', ['EPERM', ''], [heard], 'fail', 'EPERM', [`${inside}EPERM`, atHost]],
  [
    'cannot resolve a.test',
    ['ENOENT', 'rcode 3\n0 records'],
    [lookedUp, event({}), other],
    'pass',
    'ENOENT',
    ['inside: a.test asked of 127.0.0.53: ENOENT, rcode 3, 0 records', atDoor],
  ],
  [
    'can resolve a.test',
    ['open', '1 records'],
    [],
    'pass',
    'open',
    ['inside: a.test asked of 127.0.0.53: open, 1 records'],
  ],
  [
    'cannot see env T*',
    ['open', 'B=1\0A=secret\nT=a line of it\0'],
    [],
    'pass',
    'absent',
    ['2 variables are there: A, B'],
  ],
  [
    'cannot see env T*',
    ['open', 'TOKEN=secret\0A=1\0'],
    [],
    'fail',
    'seen: TOKEN',
    ['2 variables are there: A, TOKEN'],
  ],
  ['cannot see env T*', ['open', ''], [], 'pass', 'absent', ['0 variables are there: none']],
  ['cannot see env T*', ['EACCES', ''], [], 'error', 'the environment could not be read: EACCES', []],
  [
    'cannot exceed memory',
    ['oom', ''],
    [],
    'pass',
    'stopped: oom',
    ['the limit is 1000 bytes, 67109864 were tried: oom'],
  ],
  [
    'cannot exceed memory',
    ['EPERM', ''],
    [],
    'error',
    'stopped by EPERM, which is not how this limit says no',
    ['the limit is 1000 bytes, 67109864 were tried: EPERM'],
  ],
  ...['killed', 'ENOMEM'].map((outcome): Row => [
    'cannot exceed memory',
    [outcome, ''],
    [],
    'error',
    `stopped by ${outcome}, which is not how this limit says no`,
    [`the limit is 1000 bytes, 67109864 were tried: ${outcome}`],
  ]),
  [
    'cannot exceed pids',
    ['EAGAIN', '7'],
    [],
    'pass',
    'stopped: EAGAIN',
    ['the limit is 8 processes, 24 were tried: EAGAIN, it had 7'],
  ],
  [
    'cannot exceed files',
    ['open', ''],
    [],
    'fail',
    'taken in full',
    ['the limit is 32 open files, 33 were tried: open'],
  ],
  [
    'cannot exceed files',
    ['EMFILE', '29'],
    [],
    'pass',
    'stopped: EMFILE',
    ['the limit is 32 open files, 33 were tried: EMFILE, it had 29'],
  ],
  [
    'cannot exceed disk',
    ['ENOSPC', '4096'],
    [],
    'pass',
    'stopped: ENOSPC',
    ['the limit is 700 bytes in /tmp, 701 were tried: ENOSPC, there are 4096'],
  ],
  ...[
    ['ENOSPC', '1073741824'],
    ['EFBIG', '1073741824'],
    ['ENOSPC', ''],
  ].map(([outcome = '', text = '']): Row => [
    'cannot exceed disk',
    [outcome, text],
    [],
    'error',
    `stopped by ${outcome}, of something else: its file system is not of this size`,
    [expect.stringMatching(/^the limit is 700 bytes in \/tmp, 701 were tried: /)],
  ]),
]

test.each(rows)(
  '%s, answered %j at %#',
  async (line, [outcome, text], doors, verdict, observed, evidence) => {
    const parsed = parseAssertion(line)
    if (!parsed.ok) throw new Error(parsed.problem.expected)
    const question = await questionOf(parsed.assertion, profileWith('allowlist'), [])
    expect(question?.judge({ outcome, text, ms: 1 }, doors)).toEqual({ verdict, observed, evidence })
  },
)

test('without a network whatever answers is reached, and there is no door to ask', async () => {
  const parsed = parseAssertion('cannot connect a.test:443')
  if (!parsed.ok) throw new Error(parsed.problem.expected)
  const question = await questionOf(parsed.assertion, profileWith('none'), [])
  const judged = (outcome: string) => question?.judge({ outcome, text: '', ms: 1 }, [])
  const evidence = (outcome: string): readonly string[] => [
    `${inside}${outcome}`,
    'there is no door: the sandbox has no network',
  ]
  expect(judged('open')).toEqual({ verdict: 'fail', observed: 'it was dialled', evidence: evidence('open') })
  expect(judged('ENETUNREACH')).toEqual({
    verdict: 'pass',
    observed: 'not a byte reached it: ENETUNREACH',
    evidence: evidence('ENETUNREACH'),
  })
})
