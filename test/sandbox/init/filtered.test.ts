// init under the system-call filter that every sandbox has from its first instruction: it needs nothing that the filter refuses.
import { arch } from 'node:process'
import { expect, it } from 'vitest'
import { compileSeccomp } from '../../../src/sandbox/seccomp.ts'
import { frame } from '../../support/init-frames.ts'
import { launch, outcome, run, shell } from '../../support/init-sandbox.ts'

const filter = compileSeccomp({ base: 'strict', allow: [], deny: [] }, arch === 'arm64' ? 'arm64' : 'x64')
const strict = { data: [{ option: '--seccomp', bytes: filter }] }

it.each([false, true])(
  'starts a server with files, counters and limits, and reports its end (one exec: %s)',
  async (oneExec) => {
    const extra = [
      frame('f', 0o640, '/tmp/file', Buffer.from('content')),
      frame('n', 'max_user_namespaces', 0n),
      frame('l', 7, 64n, 64n),
    ]
    const script =
      'read line < /tmp/file; echo $line; while read line; do case $line in Seccomp:*) echo $line; esac; done < /proc/self/status; exit 3'
    const { stdout, code, diagnostics, reports } = await run(shell(script, { extra, oneExec }), strict)
    expect({ stdout, code, diagnostics }).toEqual({
      stdout: 'content\nSeccomp: 2\n',
      code: 3,
      diagnostics: '',
    })
    expect(reports.map(({ type }) => type)).toEqual(['R', 'S', 'E'])
  },
)

it('forwards signals, reaps, and runs the ladder alone', async () => {
  await using sandbox = launch(
    shell('trap "" TERM; (sleep 60 &); echo ready; sleep 60', { eofMs: 50, termMs: 50 }),
    strict,
  )
  await sandbox.report('S')
  sandbox.send(frame('s', 10)).hangUp()
  expect((await outcome(sandbox)).code).toBeGreaterThan(128)
})
