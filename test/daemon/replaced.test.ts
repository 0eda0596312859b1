// An upgrade, or an uninstallation, under a daemon that runs: what it has not loaded yet fails by name, and nothing is taken from another build.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { configOf, fixture, type Place, place } from '../support/daemon.ts'
import { eventually } from '../support/eventually.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What lies in dist and is none of it, such as what the test runner keeps there and writes at any moment, and what no program reads. */
const isNotRun = (path: string): boolean =>
  path.startsWith(`${join(root, 'dist')}/.`) || path.endsWith('.d.ts')

/** What is installed, in a folder of its own. */
function install(folder: string): string {
  const installed = join(folder, 'installed')
  mkdirSync(join(installed, 'sandbox'), { recursive: true })
  for (const part of ['dist', 'profiles', 'package.json', 'sandbox/seccomp', 'sandbox/sallyport-stdio'])
    cpSync(join(root, part), join(installed, part), {
      recursive: true,
      filter: (path) => !isNotRun(path),
    })
  mkdirSync(join(installed, 'node_modules'))
  for (const name of readdirSync(join(root, 'node_modules')))
    symlinkSync(join(root, 'node_modules', name), join(installed, 'node_modules', name))
  return installed
}

interface Running extends AsyncDisposable {
  readonly at: Place
  readonly installed: string
  readonly client: Client
}

async function running(
  servers: Readonly<Record<string, object>> = { echo: fixture('echo') },
): Promise<Running> {
  const stack = new AsyncDisposableStack()
  const at = stack.use(await place(configOf(servers)))
  const installed = install(at.folder)
  const main = join(installed, 'dist/cli/main.js')
  const child = spawn(process.execPath, [main, 'serve'], { env: at.env, cwd: at.folder, stdio: 'ignore' })
  const ended = once(child, 'exit')
  stack.defer(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const client = stack.use(await eventually(() => at.connect('operator').catch(() => null)))
  return { at, installed, client, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** Puts the parts of another build in the place of what is installed, until what it returns is called. */
function ofAnotherBuild({ installed }: Running): () => void {
  const files = globSync('dist/{config,journal,parts,schema}/*.js', { cwd: installed }).map((path) => {
    const whole = join(installed, path)
    return { path: whole, text: readFileSync(whole, 'utf8') }
  })
  const name = /const build = ("[0-9a-f]{64}")/
  const [id = ''] = files.flatMap(({ text }) => name.exec(text)?.[1] ?? [])
  for (const { path, text } of files) writeFileSync(path, text.replaceAll(id, '"another"'))
  return () => files.forEach(({ path, text }) => writeFileSync(path, text))
}

const replaced = { message: expect.stringContaining('sallyport was replaced on disk') }

/** What each of these comes to: a reload, a verification, a server that is added. */
const late = {
  'daemon/reload': (client: Client) => client.call('daemon/reload', {}),
  'audit/verify': (client: Client) => client.call('audit/verify', {}),
  'servers/add': (client: Client) =>
    client.call('servers/add', {
      server: 'more',
      entry: { ...fixture('echo'), version: '1', justification: 'to see it added', tags: [] },
    }),
}

test('before that, all of it works from a folder of its own', async () => {
  await using it = await running()
  for (const ask of Object.values(late)) await ask(it.client)
})

test('what is gone fails by name, and what is loaded goes on', async () => {
  await using it = await running()
  rmSync(join(it.installed, 'dist'), { recursive: true })
  for (const [method, ask] of Object.entries(late))
    await expect(ask(it.client), method).rejects.toMatchObject(replaced)
  expect(await it.client.call('servers/list', {})).toMatchObject({ servers: [{ name: 'echo' }] })
})

test('no schema is to blame where what judges by it is gone, and it is judged by when that is back', async () => {
  await using it = await running({ schemas: fixture('hostile-schemas') })
  const call = () =>
    it.client.call('tools/call', { server: 'schemas', tool: 'honest', arguments: { text: 'abc' } })
  await it.client.call('servers/start', { server: 'schemas' })
  const dist = join(it.installed, 'dist')
  renameSync(dist, `${dist}.away`)
  for (const _again of [1, 2, 3])
    await expect(call()).rejects.toMatchObject({ code: 'ERR_ARGUMENTS_INVALID', ...replaced })
  renameSync(`${dist}.away`, dist)
  const restore = ofAnotherBuild(it)
  for (const _again of [1, 2, 3]) await expect(call()).rejects.toMatchObject(replaced)
  restore()
  expect(await call()).toMatchObject({ type: 'output' })
})

test('nothing is taken from the processes and threads of another build', async () => {
  await using it = await running()
  ofAnotherBuild(it)
  for (const method of ['daemon/reload', 'audit/verify'] as const)
    await expect(late[method](it.client), method).rejects.toMatchObject(replaced)
  const { stderr, status } = await it.at.run(['reload'])
  expect({ stderr, status }).toEqual({
    stderr: expect.stringMatching(/^sallyport: sallyport was replaced on disk .*\n$/) as string,
    status: 1,
  })
})

test('so does the package that speaks to a container engine', async () => {
  await using at = await place()
  const installed = install(at.folder)
  rmSync(join(installed, 'node_modules/dockerode'))
  const engine = pathToFileURL(join(installed, 'dist/sandbox/docker/engine.js')).href
  const program = `const { openEngine } = await import(${JSON.stringify(engine)})
    await openEngine({ kind: 'unix', path: '/nothing' }, {}).catch(({ message }) => console.log(message))`
  const command = ['--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: installed })
  expect(stdout).toContain('sallyport was replaced on disk')
})
