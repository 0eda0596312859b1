// Bytes and ends in a container, held row by row against the same in a bubblewrap sandbox, and against what they have to be.
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import type { SandboxExit } from '../../src/sandbox/driver.ts'
import { inputOf } from '../../src/supervisor/dispatch.ts'
import { engineTest } from '../support/engine.ts'
import { launchHost, launchProbe, settingsFor } from '../support/launch.ts'
import { buildProbe } from '../support/probe.ts'

const pattern = (length: number): Buffer =>
  Buffer.alloc(
    length,
    Uint8Array.from({ length: 256 }, (_, it) => it),
  )
const text = (it: string): Buffer => Buffer.from(it, 'latin1')
const MiB = 1 << 20

interface Row {
  readonly args: readonly string[]
  /** What is written to it, each at once; its stdin ends then */
  readonly input?: readonly Buffer[]
  readonly isSlow?: boolean
  readonly stdout?: Buffer
  readonly stderr?: Buffer
  readonly code?: number
  readonly signal?: number
}

const echoed = (...input: readonly Buffer[]): Row => ({ args: ['echo'], input, stdout: Buffer.concat(input) })

const rows: Readonly<Record<string, Row>> = {
  nothing: echoed(),
  'every byte, NUL among them': echoed(pattern(256)),
  'no UTF-8': echoed(Buffer.from([0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0xf0, 0x9f])),
  'half a line': echoed(text('{"a":1}\n{"b"')),
  'keys that detach a terminal': echoed(text('\x10\x11\x04\x03\x1aafter')),
  'what looks like a frame of the engine’s, in': echoed(text('\x01\0\0\0\0\0\0\x05hello\x02\0\0\0')),
  'a line of 16 MiB': echoed(Buffer.alloc(16 * MiB, 'x'), text('\n')),
  '32 MiB': echoed(pattern(32 * MiB)),
  'a thousand pieces': echoed(...Array.from({ length: 1_000 }, (_, it) => text(`line ${it}\n`))),
  'reads of ten bytes': { ...echoed(pattern(30_000)), args: ['echo', '10'] },
  'frames of its own, out': { args: ['write', '1', '2050', '8'], stdout: pattern(2050) },
  'a flood of answers, slowly taken': { args: ['write', '1', '4000000'], stdout: pattern(4e6), isSlow: true },
  'a flood of errors': { args: ['write', '2', '8000000'], stderr: pattern(8e6) },
  'errors before the answer': {
    args: ['errors-first', '900000'],
    stdout: text('after'),
    stderr: pattern(9e5),
  },
  'floods of both': { args: ['both', '3000000'], stdout: pattern(3e6), stderr: pattern(3e6) },
  'single bytes': { args: ['write', '1', '3000', '1'], stdout: pattern(3000) },
  'a status': { args: ['exit', '7'], stdout: text('half a line'), code: 7 },
  'a status like a shell’s for a signal': { args: ['exit', '137'], stdout: text('half a line'), code: 137 },
  'the status of a runtime that finds no program': {
    args: ['exit', '127'],
    stdout: text('half a line'),
    code: 127,
  },
  'a signal': { args: ['signal', '11'], stdout: text('before'), signal: 11 },
  'a signal that nobody may catch': { args: ['signal', '9'], stdout: text('before'), signal: 9 },
  'a closed stdout': { args: ['closes', '1'], input: [pattern(5000)], stderr: pattern(5000) },
  'a closed stderr': { args: ['closes', '2'], input: [pattern(5000)], stdout: pattern(5000) },
  'input that it never reads': { args: ['unread'], input: [pattern(4 * MiB)], stdout: text('read nothing') },
  'a child that holds the streams': { args: ['orphan'], stdout: text('parent'), code: 3 },
}

interface Outcome {
  readonly stdout: string
  readonly stderr: string
  readonly exit: SandboxExit
}

const digest = (bytes: Buffer): string =>
  `${bytes.length} bytes, ${createHash('sha256').update(bytes).digest('hex')}`

const taken = async (stream: AsyncIterable<Buffer>, isSlow: boolean): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of stream) {
    chunks.push(chunk)
    if (isSlow) await delay(1)
  }
  return digest(Buffer.concat(chunks))
}

const outcomeOf = async (
  driver: 'bubblewrap' | 'docker',
  { args, input = [], isSlow = false }: Row,
  host: Awaited<ReturnType<typeof launchHost>>,
): Promise<Outcome> => {
  const settings = await settingsFor('unused', [], { driver, package: null, command: 'streams', args })
  const allowedCommands = [{ name: 'streams', path: buildProbe('streams'), interpreter: 'none' }]
  await using server = await launchProbe({ ...settings, allowedCommands }, host)
  const stdin = inputOf(server)
  stdin.on('error', () => {}) // it may have ended before it read
  for (const piece of input) stdin.write(piece)
  stdin.end()
  const streams = [server.stdout, server.stderr].map((it) => taken(it as AsyncIterable<Buffer>, isSlow))
  const [stdout = '', stderr = ''] = await Promise.all(streams)
  return { stdout, stderr, exit: await server.ended }
}

describe.concurrent('in a container as under bubblewrap', () => {
  engineTest.for(Object.entries(rows))('%s', async ([, row], { engine: { environment } }) => {
    await using host = await launchHost({ environment })
    const [inside, usual] = await Promise.all([
      outcomeOf('docker', row, host),
      outcomeOf('bubblewrap', row, host),
    ])
    const { stdout = text(''), stderr = text(''), signal = null, code = signal === null ? 0 : null } = row
    expect(inside).toEqual(usual)
    expect(inside).toEqual({
      stdout: digest(stdout),
      stderr: digest(stderr),
      exit: { code, signal, reason: 'exited' },
    })
  })
})
