// The whole of sallyport-init under valgrind, which finds what the sanitizers don't: decisions by memory that was never set.
// It knows no seccomp(2), so the launch that executes once, and the listener of the way out, are the sanitizers' alone.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { frame } from '../../support/init-frames.ts'
import { ids, InitProcess, initOrders, outcome, shell } from '../../support/init-sandbox.ts'
import { tempDir } from '../../support/temp-dir.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))
const own = ['--quiet', '--vgdb=no', '--error-exitcode=99', '--leak-check=no']
let folder: Awaited<ReturnType<typeof tempDir>>
let binary = ''

beforeAll(async () => {
  folder = await tempDir()
  execFileSync('make', ['-s', '-C', join(repository, 'sandbox'), 'plain'], { stdio: 'inherit' })
  binary = join(folder.path, 'init')
  copyFileSync(join(repository, 'dist/.fuzz/whole'), binary)
})
afterAll(() => folder[Symbol.asyncDispose]())

/** What a valgrind says of `pidfd_open` that does not know it: nothing of memory, and the guard then does without. */
const pidfdOpen = /^--\d+-- WARNING: unhandled \S+ syscall: 434\n(--\d+-- .*\n){4}/m

/** Runs a personality that has nothing but its streams. */
async function ran(
  args: readonly string[],
  input: string,
  program = binary,
): Promise<{ code: unknown; said: string }> {
  const child = spawn('valgrind', [...own, program, ...args], { stdio: ['pipe', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (text: Buffer) => (said += text.toString()))
  child.stdin.on('error', () => undefined).end(input)
  const [code] = (await once(child, 'close')) as [unknown]
  return { code, said: said.replace(pidfdOpen, '') }
}

const pid1 = (): InitProcess => {
  const namespaces = '--unshare-user --unshare-pid --uid 1000 --gid 1000 --as-pid-1 --cap-drop ALL'.split(' ')
  const capabilities = ['--cap-add', 'CAP_SYS_RESOURCE', '--cap-add', 'CAP_SETPCAP']
  const root = ['--ro-bind', '/', '/', '--proc', '/proc', '--tmpfs', '/tmp', '--ro-bind', binary, '/tmp/init']
  const program = ['/usr/bin/valgrind', ...own, '/tmp/init', 'init']
  return new InitProcess('/usr/bin/bwrap', [...namespaces, ...capabilities, ...root, ...program], {
    env: { PATH: '/usr/bin:/bin' },
  })
}

test('PID 1, from its orders to the end of the server, and every order in between', async () => {
  await using process = pid1()
  const extra = [frame('l', 4, 0n, 0n)]
  process.send(
    frame('t', '/usr'),
    ...initOrders(shell('trap "exit 7" TERM; echo ready; while :; do :; done', { env: { A: 'b' }, extra })),
  )
  await process.report('S')
  await eventually(() => process.stdout().toString() === 'ready\n')
  process.send(frame('s', 18), frame('T'))
  expect(await outcome(process)).toMatchObject({ code: 7, diagnostics: '' })
})

test('PID 1 where its orders are wrong, and where they end', async () => {
  for (const orders of [frame('t', 'relative'), frame('q'), Buffer.from('t')]) {
    await using process = pid1()
    process.control.end(orders)
    const { code, diagnostics } = await outcome(process)
    expect(code, diagnostics).toBe(125)
  }
})

test('the launcher, up to the tool that it becomes', async () => {
  await using process = new InitProcess('/usr/bin/valgrind', [...own, '--trace-children=no', binary, 'outer'])
  process.control.end(
    Buffer.concat([
      frame('u', ids.uid, ids.gid),
      frame('b', '/usr/bin/true'),
      frame('a', '--option'),
      frame('d', Buffer.from('data')),
      frame('x'),
    ]),
  )
  expect(await outcome(process)).toMatchObject({ code: 0, diagnostics: '' })
})

test('the shim, through a session and a refusal', async () => {
  const path = join(folder.path, 's')
  let session = 0
  const server = createServer((socket) => {
    const answers = [
      '"result":{"session":"s-1"}',
      '"result":{"status":9}',
      '"error":{"message":"no","data":{"code":"ERR_SERVER_NOT_FOUND"}}',
    ]
    socket
      .on('error', () => undefined)
      .resume()
      .end(`{"jsonrpc":"2.0","id":1,${answers[session++]}}\nbytes of the session`)
  })
  server.listen(path)
  await once(server, 'listening')
  expect(await ran(['stdio', 'files', '--socket', path], 'to the server')).toEqual({ code: 9, said: '' })
  expect(await ran(['stdio', 'files', '--socket', path], '')).toEqual({
    code: 8,
    said: 'sallyport: no (ERR_SERVER_NOT_FOUND)\n',
  })
  server.close()
})

test('the guard, and what it cleans up', async () => {
  const lines = [
    `unlink ${folder.path}/gone`,
    `rmdir ${folder.path}/none`,
    `doors ${folder.path}/doors`,
    'nonsense',
    '/'.repeat(5000),
  ]
  writeFileSync(join(folder.path, 'gone'), '')
  expect(await ran(['guard', folder.path, folder.path], '')).toMatchObject({ code: 1 })
  expect(await ran(['guard', folder.path], `${lines.join('\n')}\n`)).toEqual({ code: 0, said: '' })
  expect(() => readFileSync(join(folder.path, 'gone'))).toThrow(/ENOENT/)
})

test('a decision by what was never set would be found', async () => {
  const source = join(folder.path, 'unset.c')
  const program = join(folder.path, 'unset')
  writeFileSync(
    source,
    '#include <stdlib.h>\nint main(void) { int *at = malloc(4); return *at == 7 ? 1 : 0; }\n',
  )
  execFileSync('cc', ['-O0', '-g', '-o', program, source])
  expect((await ran([], '', program)).code).toBe(99)
})
