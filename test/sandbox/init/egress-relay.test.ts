// Connections through the relay: every byte, both ends, no more memory than is said, and a reset where there is nobody.
import { readdirSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { confine } from '../../../src/sandbox/bubblewrap/driver.ts'
import type { SandboxProcess } from '../../../src/sandbox/driver.ts'
import { egressPlan } from '../../support/egress.ts'
import { eventually } from '../../support/eventually.ts'
import { buildInit, isRoot } from '../../support/init-sandbox.ts'
import { start, textOf } from '../../support/plan.ts'
import { openTestDoor, type TestDoor } from '../../support/sandbox-door.ts'
import { patienceMs } from '../../support/patience.ts'

beforeAll(() => void buildInit())

interface Scene {
  readonly door: TestDoor
  readonly server: SandboxProcess
  /** Lets the scenario go on where it waits */
  readonly go: () => void
}

/** Plays a scenario against a door that serves as given; returns the last line that it printed. */
const play = async (
  scenario: string,
  serve: (socket: Socket) => void,
  more: { readonly number?: number; readonly during?: (scene: Scene) => Promise<void> } = {},
): Promise<unknown> => {
  await using door = await openTestDoor(({ line, socket }) => {
    expect(line).toBe('SP1 connect echo.example.test 7000')
    serve(socket)
  })
  const args = [scenario, String(more.number ?? 0)]
  await using server = await start(await egressPlan(door, ['echo.example.test:7000'], 'tunnels.mjs', args))
  const stdin = server.stdin as unknown as NodeJS.WritableStream
  const output = Promise.all([textOf(server.stdout), textOf(server.stderr)])
  await more.during?.({ door, server, go: () => void stdin.write('go\n') })
  const [stdout, stderr] = await output
  expect(stderr).toBe('')
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
}

/** Collects what comes, and tells at its end. */
const collect = (socket: Socket, ended: (text: string) => void): void => {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.once('end', () => ended(Buffer.concat(chunks).toString('latin1')))
}

describe('ends', () => {
  test('a client that has ended still gets the answer', async () => {
    const got = await play('client ends first', (socket) =>
      collect(socket, (text) => socket.end(`${text} and down`)),
    )
    expect(got).toEqual({ text: 'up and down', ended: 'FIN' })
  })

  test('a server that has ended still hears the client', async () => {
    let late: string | null = null
    const got = await play('server ends first', (socket) => {
      socket.end('first')
      collect(socket, (text) => (late = text))
    })
    expect(got).toEqual({ text: 'first', ended: 'FIN' })
    expect(late).toBe('late')
  })

  test('a door that ends without a word resets the client', async () => {
    expect(await play('only reads', (socket) => socket.end())).toEqual({ text: '', ended: 'ECONNRESET' })
  })

  test('a door that closes after a word ends the stream, once all has come', async () => {
    const text = 'x'.repeat(300_000)
    const got = await play('only reads', (socket) => socket.end(text, () => socket.destroy()))
    expect(got).toEqual({ text, ended: 'FIN' })
  })

  test('a client’s reset ends the connection at the door', async () => {
    const closed = Promise.withResolvers<void>()
    const got = await play(
      'client resets',
      (socket) => {
        socket.write('hello')
        socket
          .resume()
          .once('close', closed.resolve)
          .once('end', () => socket.end())
      },
      {
        during: async ({ go }) => {
          await closed.promise
          go()
        },
      },
    )
    expect(got).toBe('reset')
  })

  test('where nobody is at the door any more a connection is reset at once', async () => {
    await using door = await openTestDoor()
    const plan = await egressPlan(door, ['echo.example.test:7000'], 'tunnels.mjs', ['only reads'])
    await using gate = await confine(plan, { signal: AbortSignal.timeout(patienceMs) })
    // It goes away when the sandbox stands.
    door.close()
    const server = await gate.open({ signal: AbortSignal.timeout(patienceMs) })
    const [stdout] = await Promise.all([textOf(server.stdout), textOf(server.stderr)])
    expect(JSON.parse(stdout)).toEqual({ text: '', ended: 'ECONNRESET' })
  })
})

describe('bytes', () => {
  const total = 100 * 2 ** 20

  /** Sends as fast as it is taken. */
  const pour = (socket: Socket): void => {
    const chunk = Buffer.alloc(1 << 18, 'y')
    let left = total
    const more = (): void => {
      while (left > 0) {
        left -= chunk.length
        if (!socket.write(chunk)) return void socket.once('drain', more)
      }
      socket.end()
    }
    more()
  }

  test('100 MB to a reader that is slow come whole, through a relay that holds 64 KiB of them', async () => {
    const got = (await play('reads slowly', pour)) as { bytes: number; peakKb: number }
    expect(got.bytes).toBe(total)
    expect(got.peakKb).toBeLessThan(1400)
  })

  test('a reader that does not read holds up the sender, and nothing is kept for it', async () => {
    let sent = 0
    const got = (await play(
      'does not read',
      (socket) => {
        pour(socket)
        sent = 0
        socket.on('drain', () => (sent = socket.bytesWritten))
      },
      {
        during: async ({ door, go }) => {
          await eventually(() => door.lines.length === 2)
          // Until nothing moves any more: the kernel's buffers are full on both sides of the relay.
          let before = -1
          await eventually(() => {
            const still = sent === before && sent > 0
            before = sent
            return still
          })
          expect(sent).toBeLessThan(total / 2)
          go()
        },
      },
    )) as { bytes: number; heldKb: number }
    expect(got.bytes).toBe(total)
    expect(got.heldKb).toBeLessThan(1400)
  })

  test('100 MB upwards come whole', async () => {
    const got = (await play(
      'sends much',
      (socket) => {
        let bytes = 0
        socket.on('data', (chunk: Buffer) => (bytes += chunk.length))
        socket.once('end', () => socket.end(String(bytes)))
      },
      { number: total },
    )) as { text: string; peakKb: number }
    expect(got.text).toBe(String(total))
    expect(got.peakKb).toBeLessThan(1400)
  })
})

test('256 connections live at once, the 257th is reset and told, and a place that is left is taken again', async () => {
  const open = new Set<Socket>()
  const got = (await play(
    'many',
    (socket) => {
      open.add(socket)
      socket
        .resume()
        .once('close', () => open.delete(socket))
        .once('end', () => socket.end())
      socket.write('hello')
    },
    {
      number: 256,
      during: async ({ door, go }) => {
        await door.noticed(/^full echo\.example\.test 7000$/)
        await eventually(() => open.size === 1)
        go()
      },
    },
  )) as { more: string; again: string; idleKb: number; busyKb: number; afterKb: number }
  expect(got).toMatchObject({ more: 'ECONNRESET', again: 'hello' })
  // The pages of a connection go back with it.
  expect(got.afterKb).toBeLessThan(got.busyKb)
})

test('a relay has given up its rights before the launch is at its gate, each time', async () => {
  await using door = await openTestDoor()
  const plan = await egressPlan(door, ['echo.example.test:7000'], 'tunnels.mjs', ['only reads'])
  for (let launches = 0; launches < 10; launches++) {
    await using _ = await confine(plan, { signal: AbortSignal.timeout(patienceMs) })
    const [relay] = relaysOf(process.pid)
    const read = (name: string): string => readFileSync(`/proc/${relay}/${name}`, 'latin1')
    expect([read('status'), read('limits')]).toEqual([
      expect.stringMatching(/^Name:\tegress\n[^]*^CapPrm:\t0+\n[^]*^CapBnd:\t0+\n[^]*^NoNewPrivs:\t1$/m),
      expect.stringMatching(/^Max processes +0 +0 /m),
    ])
  }
})

test('a relay that is killed at the gate ends the launch, with the step and how', async () => {
  await using door = await openTestDoor()
  const plan = await egressPlan(door, ['echo.example.test:7000'], 'tunnels.mjs', ['only reads'])
  const signal = AbortSignal.timeout(patienceMs)
  const others = relaysOf(process.pid) // of a test before this one that was given up
  await using gate = await confine(plan, { signal })
  const relays = relaysOf(process.pid).filter((pid) => !others.includes(pid))
  expect(relays).toHaveLength(1)
  for (const pid of relays) process.kill(pid, 'SIGKILL')
  await eventually(() =>
    relays.every((pid) => readFileSync(`/proc/${pid}/status`, 'latin1').includes('State:\tZ')),
  )
  await expect(gate.open({ signal })).rejects.toMatchObject({
    code: 'ERR_SANDBOX_SETUP',
    message: expect.stringContaining('egress: the relay was killed by signal 9'),
  })
})

// Only root may look.
test.runIf(isRoot)('an idle relay costs less than 300 KiB', async () => {
  await using door = await openTestDoor()
  const plan = await egressPlan(
    door,
    ['echo.example.test:7000', '*.example.test:443'],
    'never-initialize.mjs',
  )
  await using server = await start(plan)
  const relay = await eventually(() =>
    childrenOf(server.initPid).find((pid) =>
      readFileSync(`/proc/${pid}/status`, 'latin1').startsWith('Name:\tegress\n'),
    ),
  )
  const rollup = readFileSync(`/proc/${relay}/smaps_rollup`, 'latin1')
  expect(Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1])).toBeLessThan(300)
})

const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
  )

/** Of the one launch of this process: the launcher, which is bubblewrap by now; PID 1; the relay. */
const relaysOf = (pid: number): number[] => childrenOf(pid).flatMap(childrenOf).flatMap(childrenOf)
