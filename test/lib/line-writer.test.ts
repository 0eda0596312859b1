// Lines of a log reach their reader whole and in order; what can't be written is counted, and holds nobody up.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

const url = new URL('../../src/log.ts', import.meta.url).href
const filler = 'x'.repeat(100)

interface Speaker {
  readonly pid: number
  /** Logs so many lines, numbered on, and resolves once all were handed over */
  say(count: number): Promise<void>
}

/** A process that logs to the descriptor. */
function speaker(stderr: number): Speaker & Disposable {
  const code = `
    const { createLogger } = await import('${url}')
    const { createInterface } = await import('node:readline')
    const log = createLogger({ level: 'info', isTerminal: false })
    let number = 0
    for await (const count of createInterface({ input: process.stdin })) {
      for (let left = Number(count); left > 0; left--) log.info({ number: number++ }, '${filler}')
      console.log('said')
    }`
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['pipe', 'pipe', stderr],
  })
  closeSync(stderr)
  const answers = createInterface({ input: child.stdout ?? process.stdin })
  return {
    pid: child.pid ?? 0,
    async say(count) {
      const said = once(answers, 'line', { signal: AbortSignal.timeout(patienceMs) })
      child.stdin?.write(`${count}\n`)
      await said
    },
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

const numbersIn = (text: string): unknown[] =>
  text
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .map(({ number, lost }) => number ?? `${String(lost)} lost`)

test('a disk that is full loses lines, never the process; the log says how many, and goes on', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'log')
  using speaks = speaker(openSync(path, 'a'))
  await speaks.say(2)
  const length = readFileSync(path).length
  const grows = (limit: string): unknown =>
    execFileSync('prlimit', ['--pid', `${speaks.pid}`, `--fsize=${limit}:`])
  grows(String(length + 50))
  await speaks.say(3)
  grows('unlimited')
  await speaks.say(2)
  expect(numbersIn(readFileSync(path, 'utf8'))).toEqual([0, 1, '3 lost', 5, 6])
})

test('a reader that is slow holds nobody up, and has all lines in order', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'fifo')
  execFileSync('mkfifo', [path])
  const open = (): number => openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const reads = open()
  using speaks = speaker(open())
  const count = 1000 // more than a pipe holds
  await speaks.say(count)
  let text = ''
  const chunk = Buffer.alloc(1 << 16)
  await expect
    .poll(
      () => {
        try {
          text += chunk.toString('utf8', 0, readSync(reads, chunk))
        } catch {
          // nothing is there yet
        }
        return numbersIn(text).length
      },
      { timeout: patienceMs, interval: 10 },
    )
    .toBe(count)
  closeSync(reads)
  expect(numbersIn(text)).toEqual(Array.from({ length: count }, (_, number) => number))
})
