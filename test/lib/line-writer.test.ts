// Lines of a log reach their reader whole and in order; what can't be written is counted, and holds nobody up.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

const url = new URL('../../src/lib/line-writer.ts', import.meta.url).href
const filler = 'x'.repeat(100)
/** Not by the library that makes our lines: where it is loaded as it is published, it looks at stderr, which changes that */
const begun = `
    const { LineWriter } = await import('${url}')
    const lines = new LineWriter(2, (lost) => JSON.stringify({ lost }) + '\\n')
    const write = (number) => lines.write(JSON.stringify({ number, filler: '${filler}' }) + '\\n')`

interface Speaker {
  readonly pid: number
  readonly stderr: Readable | null
  /** Logs so many lines, numbered on, and resolves once all were handed over */
  say(count: number): Promise<void>
}

/** A process that logs to the descriptor. */
function speaker(stderr: number | 'pipe'): Speaker & Disposable {
  const code = `
    const { createInterface } = await import('node:readline')
    ${begun}
    let number = 0
    for await (const count of createInterface({ input: process.stdin })) {
      for (let left = Number(count); left > 0; left--) write(number++)
      console.log('said')
    }`
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['pipe', 'pipe', stderr],
  })
  if (stderr !== 'pipe') closeSync(stderr)
  const answers = createInterface({ input: child.stdout ?? process.stdin })
  return {
    pid: child.pid ?? 0,
    stderr: child.stderr,
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
  const reads = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  using speaks = speaker(openSync(path, constants.O_WRONLY)) // which is of the kind that blocks, as a shell's is
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

test('nor does one at the other end of a socket', async () => {
  using speaks = speaker('pipe') // which Node makes of two sockets
  const count = 10_000
  await speaks.say(count)
  let text = ''
  speaks.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const last = (): unknown => numbersIn(text).at(-1)
  await expect.poll(last, { timeout: patienceMs }).toMatch(/lost$/)
  await speaks.say(1)
  await expect.poll(last, { timeout: patienceMs }).toBe(count)
})

test('nor does a terminal that somebody has stopped', async () => {
  await using folder = await tempDir()
  const said = join(folder.path, 'said')
  const speaks = join(folder.path, 'speaks.mjs')
  writeFileSync(
    speaks,
    `import { appendFileSync } from 'node:fs'
    import { createInterface } from 'node:readline'
    ${begun}
    appendFileSync('${said}', '!')
    for await (const count of createInterface({ input: process.stdin })) {
      for (let left = Number(count); left > 0; left--) write(left)
      appendFileSync('${said}', count)
    }`,
  )
  const command = `'${process.execPath}' '${speaks}'`
  const terminal = spawn('script', ['-qfc', command, '/dev/null'], { stdio: ['pipe', 'ignore', 'inherit'] })
  const hasSaid = (text: string) =>
    expect.poll(() => readFileSync(said, 'utf8'), { timeout: patienceMs }).toBe(text)
  writeFileSync(said, '')
  await hasSaid('!')
  terminal.stdin.write('\x13')
  terminal.stdin.write('1000\n')
  await hasSaid('!1000')
  terminal.stdin.write('\x11\x04')
  await once(terminal, 'close')
})

test('what is said right before the end reaches a reader who comes to it within that time', async () => {
  const code = `
    ${begun}
    for (let number = 0; number < 1000; number++) write(number)
    process.exit(0)`
  const child = spawn(
    'sh',
    ['-c', `'${process.execPath}' --input-type=module -e "$0" 2>&1 >/dev/null | cat`, code],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(child, 'close')
  expect(numbersIn(text)).toEqual(Array.from({ length: 1000 }, (_, number) => number))
})
