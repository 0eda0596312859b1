// A configuration that is read in a process of its own: the same settings, the same refusals.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { loadSettingsApart } from '../../src/config/load-apart.ts'
import { loadSettings } from '../../src/config/load.ts'
import { SallyportError } from '../../src/errors.ts'
import { findInitBinary } from '../../src/sandbox/init-binary.ts'
import { eventually } from '../support/eventually.ts'
import { processesWith } from '../support/leaks.ts'
import { tempDir } from '../support/temp-dir.ts'

const uid = process.getuid?.() ?? 0
const initPath = await findInitBinary()
const shipped = fileURLToPath(new URL('../../profiles/', import.meta.url))

/** Where each object and function of a value stands that is frozen, and of which kind it is. */
function* kindsOf(value: unknown, at = ''): Generator<string> {
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'function') yield `${at}: a function`
    return
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  const kind = prototype === null ? 'nothing' : (prototype as object).constructor.name
  yield `${at}: ${kind}${Object.isFrozen(value) ? ', frozen' : ''}`
  for (const [key, inner] of value instanceof Map ? value : Object.entries(value))
    yield* kindsOf(inner, `${at}/${String(key)}`)
}

test('gives the settings that are read in this process, frozen all the way down', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'sallyport.yaml')
  writeFileSync(
    path,
    `version: 1
allowed_commands: [node, { name: python3, interpreter: python }]
credentials: { token: { env: TOKEN }, other: { command: [/usr/bin/secret-tool, lookup] } }
rules:
  - { permission: 'mcp:files:*', action: ask, where: { /path: '/srv/*' } }
  - { permission: 'mcp:*:*', action: allow }
servers:
  files:
    command: node
    args: [constructor, __proto__]
    env: { GREETED: '\${env:GREETING}' }
    profile: node
    stop: { eof_ms: 1 }
  web:
    command: python3
    profile: offline
    tags: [nowhere]
`,
    { mode: 0o600 },
  )
  const options = { env: { GREETING: 'grüß dich', TOKEN: 't' }, home: folder.path, uid, path }
  const [apart, here] = [await loadSettingsApart(options, { initPath }), await loadSettings(options)]
  expect(apart).toEqual(here)
  expect([...kindsOf(apart)]).toEqual([...kindsOf(here)])
  expect(apart.servers.get('files')?.env['GREETED']).toBe('grüß dich')
  expect(apart.profiles.get('node')?.path).toContain(shipped)
})

test('refuses what is refused in this process, by the same name and with the same words', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'sallyport.yaml')
  const options = { env: {}, home: folder.path, uid, path }
  for (const [text, code] of [
    ['version: 1\nservers: { a: { comand: node } }\n', 'ERR_CONFIG_INVALID'],
    ['version: 1\nversion: 1\n', 'ERR_CONFIG_SYNTAX'],
    [null, 'ERR_CONFIG_NOT_FOUND'],
  ] as const) {
    if (text !== null) writeFileSync(path, text, { mode: 0o600 })
    const asked = text === null ? { ...options, path: `${path}.gone` } : options
    const refusal = await loadSettings(asked).catch((error: unknown) => error)
    if (!(refusal instanceof SallyportError)) throw new Error('not refused')
    expect(refusal.code).toBe(code)
    await expect(loadSettingsApart(asked, { initPath })).rejects.toMatchObject({
      code,
      message: refusal.message,
      details: refusal.details,
    })
  }
})

test('waits for no more than what was read: a process can hang as it exits', async () => {
  await using folder = await tempDir()
  const [path, hang] = [join(folder.path, 'sallyport.yaml'), join(folder.path, 'hang.mjs')]
  writeFileSync(path, 'version: 1\n', { mode: 0o600 })
  writeFileSync(
    hang,
    `process.on('exit', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0))\n`,
  )
  const options = { env: { NODE_OPTIONS: `--import=${hang}` }, home: folder.path, uid, path }
  expect((await loadSettingsApart(options, { initPath })).servers.size).toBe(0)
  await eventually(() => processesWith(path).length === 0)
})

test('says by what the process that reads was ended before it had read', async () => {
  await using folder = await tempDir()
  const [path, dies] = [join(folder.path, 'sallyport.yaml'), join(folder.path, 'dies.mjs')]
  writeFileSync(path, 'version: 1\n', { mode: 0o600 })
  writeFileSync(dies, `process.kill(process.pid, 'SIGKILL')\n`)
  const options = { env: { NODE_OPTIONS: `--import=${dies}` }, home: folder.path, uid, path }
  await expect(loadSettingsApart(options, { initPath })).rejects.toMatchObject({
    code: 'ERR_SHORTAGE',
    message: expect.stringContaining('ended by SIGKILL, as where memory or processes run out'),
  })
})

test('ends a process that never begins to read, while whoever started the daemon in the background still waits for it', async () => {
  await using folder = await tempDir()
  const [path, waits] = [join(folder.path, 'sallyport.yaml'), join(folder.path, 'waits.mjs')]
  writeFileSync(path, 'version: 1\n', { mode: 0o600 })
  writeFileSync(waits, `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)\n`)
  const options = { env: { NODE_OPTIONS: `--import=${waits}` }, home: folder.path, uid, path }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const loading = loadSettingsApart(options, { initPath })
  const refused = expect(loading).rejects.toMatchObject({
    code: 'ERR_SHORTAGE',
    message: expect.stringContaining('or by us after 30 s'),
  })
  vi.advanceTimersByTime(35_000)
  vi.useRealTimers()
  await refused
  await eventually(() => processesWith(path).length === 0)
})

test('says that the machine is short where there is no descriptor for the process that reads', () => {
  const module = new URL('../../src/config/load-apart.ts', import.meta.url).href
  const code = `
    import { openSync } from 'node:fs'
    const { loadSettingsApart } = await import(${JSON.stringify(module)})
    try { for (;;) openSync('/dev/null') } catch {}
    const told = await loadSettingsApart({ env: {}, home: '/', uid: ${uid} }, { initPath: ${JSON.stringify(initPath)} }).catch((error) => error.code)
    console.log(told)`
  const shell = 'ulimit -n 200; exec "$0" --input-type=module -e "$1"'
  expect(execFileSync('bash', ['-c', shell, process.execPath, code], { encoding: 'utf8' })).toBe('EMFILE\n')
})
