// What a user's NODE_OPTIONS makes of Node is no business of ours until it keeps us from running, or opens us to others.
import { expect, test } from 'vitest'
import { configOf, place, serve } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

test.each(['ps', 'doctor', 'serve', 'profile list'])(
  'with --frozen-intrinsics `%s` ends with one line that names it',
  async (verb) => {
    await using at = await place(configOf({}))
    const env = { NODE_OPTIONS: '--frozen-intrinsics --no-warnings' }
    expect(await at.run(verb.split(' '), { env })).toEqual({
      stdout: '',
      stderr: expect.stringMatching(/^sallyport: .*--frozen-intrinsics.* NODE_OPTIONS.* \(ERR_USAGE\)\n$/),
      status: 7,
    })
  },
)

test('a debugger of the daemon’s is told in its log', async () => {
  await using at = await place(configOf({}))
  const child = at.start(['serve'], { NODE_OPTIONS: '--inspect=127.0.0.1:0' })
  let said = ''
  child.stderr?.on('data', (text: Buffer) => (said += text.toString()))
  await eventually(() => /"url":"ws:.*a debugger listens.*--inspect/.test(said))
})

test('with a heap of 20 MiB, and without warnings or code from strings, a daemon answers', async () => {
  await using at = await place(configOf({}))
  const env = {
    NODE_OPTIONS: '--max-old-space-size=20 --throw-deprecation --disallow-code-generation-from-strings',
  }
  const { client } = await serve(at, env)
  await client[Symbol.asyncDispose]()
  expect(await at.run(['ps'], { env })).toMatchObject({ stderr: '', status: 0 })
})
