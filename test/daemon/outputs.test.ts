// Results that are too long to be answered at once: their beginning, the whole beside it, and who may read that.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Outputs } from '../../src/daemon/outputs.ts'
import { redactor } from '../../src/daemon/redactor.ts'
import type { CallId } from '../../src/lib/ids.ts'
import { RawJson } from '../../src/lib/raw-json.ts'
import type { CallResult } from '../../src/rpc/protocol.ts'
import { attach } from '../support/attach.ts'
import { eventually } from '../support/eventually.ts'
import { serverSettings } from '../support/server-settings.ts'
import { caller, superviseAll, type Supervised } from '../support/supervisor.ts'
import { tempDir } from '../support/temp-dir.ts'
import { patienceMs } from '../support/patience.ts'

const output = { resultBytes: 2000, lineBytes: 10_000_000, stderrBytes: 1000 }
/** As long as each wait may take, counted from where it begins */
const waiting = {
  get signal() {
    return AbortSignal.timeout(patienceMs)
  },
}

const call = (all: Supervised, tool: string, args: object, uid = 1000): Promise<CallResult> =>
  all.supervisor.call(
    caller(uid),
    {
      server: 'fixture',
      tool,
      arguments: new RawJson(JSON.stringify(args)),
      timeoutMs: null,
      generation: null,
      lineage: null,
    },
    waiting,
  )

test('a result over output.result_bytes is answered with its beginning, and the whole lies beside it for its caller', async () => {
  await using all = await superviseAll([serverSettings('huge-line.mjs', { output })])
  const { call_id, type, data, error_text, metadata } = await call(all, 'huge', { bytes: 50_000 })
  expect({ type, error_text }).toEqual({ type: 'output', error_text: null })
  expect(data).toEqual({
    content: [{ type: 'text', text: expect.stringMatching(/^x{1700,2000}$/) as string }],
  })
  expect(Buffer.byteLength(JSON.stringify(data))).toBeLessThanOrEqual(2000)
  expect(metadata).toMatchObject({ truncated: true, output_path: expect.stringContaining(call_id) as string })
  const path = metadata.output_path ?? ''
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const whole = JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(50_000) }] })
  expect(readFileSync(path, 'utf8')).toBe(whole)

  let text = ''
  for (let next: number | null = 0; next !== null;) {
    const piece = await all.outputs.read(caller(1000), { call_id, offset: next, limit: 20_000 })
    expect(piece).toMatchObject({ bytes: whole.length, offset: next })
    text += piece.text
    ;({ next } = piece)
  }
  expect(text).toBe(whole)
  await expect(all.outputs.read(caller(1001), { call_id })).rejects.toMatchObject({
    code: 'ERR_OUTPUT_NOT_FOUND',
  })
  expect((await all.outputs.read(caller(0, 'operator'), { call_id })).next).toBe(null)
})

test('a result within the limit is whole', async () => {
  await using all = await superviseAll([serverSettings('huge-line.mjs', { output })])
  const { data, metadata } = await call(all, 'huge', { bytes: 1000 })
  expect(metadata).toMatchObject({ truncated: false, output_path: null })
  expect(data).toBeInstanceOf(RawJson)
})

test('what fails at length is an error whose text is cut, too', async () => {
  await using all = await superviseAll([serverSettings('long-failures.mjs', { output })])
  const failed = await call(all, 'fail', { bytes: 9000 })
  expect(failed).toMatchObject({ type: 'error', data: { isError: true }, metadata: { truncated: true } })
  expect(failed.error_text?.length).toBeLessThan(2000)
  const error = await call(all, 'error', { bytes: 9000 })
  expect(error).toMatchObject({ type: 'error', data: { code: -32050 }, metadata: { truncated: true } })
  expect(JSON.stringify(error.data)).toMatch(/^\{"code":-32050,"message":"x{1900,}"\}$/)
  expect(JSON.stringify(error.data).length).toBeLessThanOrEqual(2000)
  expect(error.error_text).toMatch(/^x{1991} \(-32050\)$/)
  expect(readFileSync(error.metadata.output_path ?? '', 'utf8').length).toBeGreaterThan(9000)
  const mute = await call(all, 'mute', { bytes: 9000 })
  expect(mute).toMatchObject({ type: 'error', data: { code: -32050 }, metadata: { truncated: true } })
  expect(mute.error_text).toBe('an error without a message (-32050)')
})

test('the shapes of secrets are taken out of both', async () => {
  const secret = `ghp_${'a1B2'.repeat(10)}`
  await using all = await superviseAll([serverSettings('huge-line.mjs', { output })])
  const { data, metadata } = await call(all, 'echo', { secret, rest: 'y'.repeat(5000) })
  expect(JSON.stringify(data)).not.toContain(secret)
  expect(JSON.stringify(data)).toContain('secret')
  expect(readFileSync(metadata.output_path ?? '', 'utf8')).not.toContain(secret)
})

test('a beginning ends between two characters', async () => {
  await using all = await superviseAll([serverSettings('huge-line.mjs', { output })])
  const { data } = await call(all, 'echo', { rest: '😀'.repeat(2000) })
  expect(JSON.stringify(data)).not.toContain('\ufffd')
})

const id = (n: number): CallId => `c-${n}` as CallId
const open = async (more: object = {}) => {
  const folder = await tempDir()
  const directory = join(folder.path, 'outputs')
  return { folder, directory, outputs: await Outputs.open({ directory, redactor, ...more }) }
}
const files = (directory: string): number => readdirSync(directory).length

test('what is kept is bounded, for one principal and for all, and the oldest goes first', async () => {
  const { folder, directory, outputs } = await open({ bounds: { principal: 250, all: 400 } })
  await using _folder = folder
  await using _outputs = outputs
  for (const n of [1, 2, 3]) await outputs.keep(id(n), '1', 'x'.repeat(100))
  await eventually(() => files(directory) === 2)
  await expect(outputs.read(caller(1), { call_id: id(1) })).rejects.toMatchObject({
    code: 'ERR_OUTPUT_NOT_FOUND',
  })
  await outputs.keep(id(4), '2', 'x'.repeat(100))
  await outputs.read(caller(1), { call_id: id(2) })
  await outputs.keep(id(5), '3', 'x'.repeat(200))
  await eventually(() => files(directory) === 3)
  await outputs.read(caller(3), { call_id: id(5) })
  expect(await outputs.keep(id(6), '1', 'x'.repeat(300))).toBe(null)
})

test('what is crowded out while it is written is not kept, and its caller is told of no file', async () => {
  const { folder, directory, outputs } = await open({ bounds: { principal: 100, all: 100 } })
  await using _folder = folder
  await using _outputs = outputs
  const kept = [1, 2].map((n) => outputs.keep(id(n), '1', 'x'.repeat(60)))
  const [first, second] = await Promise.all(kept)
  expect(first).toBeNull()
  expect(readdirSync(directory).map((name) => join(directory, name))).toEqual([second])
})

test('what is kept goes by age, with the daemon, and at the next start', async () => {
  const { folder, directory, outputs } = await open({ keepMs: 50 })
  await using _folder = folder
  const path = await outputs.keep(id(1), '1', 'x')
  await eventually(() => !existsSync(path ?? ''))
  await outputs[Symbol.asyncDispose]()
  expect(existsSync(directory)).toBe(false)
  const earlier = await Outputs.open({ directory, redactor })
  const left = await earlier.keep(id(2), '1', 'x')
  await using _later = await Outputs.open({ directory, redactor })
  expect(existsSync(left ?? '')).toBe(false)
  await earlier[Symbol.asyncDispose]()
})

test('what can’t be opened is not said to be gone, unless it is', async () => {
  const { folder, outputs } = await open()
  await using _folder = folder
  await using _outputs = outputs
  const path = (await outputs.keep(id(1), '1', 'x')) ?? ''
  rmSync(path)
  await expect(outputs.read(caller(1), { call_id: id(1) })).rejects.toThrow('nothing is kept')
  symlinkSync(path, path) // fails as to open it does where there is no descriptor: by another errno than ENOENT
  await expect(outputs.read(caller(1), { call_id: id(1) })).rejects.toThrow('ELOOP')
})

test('in an attached session an answer over the limit is an error that says so, and one within it passes', async () => {
  await using host = await attach(serverSettings('huge-line.mjs', { output }))
  const ask = (n: number, bytes: number) => ({
    jsonrpc: '2.0',
    id: n,
    method: 'tools/call',
    params: { name: 'huge', arguments: { bytes } },
  })
  host.send({ jsonrpc: '2.0', id: 'i', method: 'initialize', params: { protocolVersion: '2025-11-25' } })
  await host.answer('i')
  host.send(ask(1, 5000), ask(2, 1000))
  expect((await host.answer(1)).error).toMatchObject({
    message: expect.stringContaining('output.result_bytes is 2000') as string,
    data: { code: 'ERR_RESULT_TOO_LARGE' },
  })
  expect((await host.answer(2)).result).toEqual({ content: [{ type: 'text', text: 'x'.repeat(1000) }] })
})
