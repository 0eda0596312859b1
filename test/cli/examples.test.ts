// The examples of docs/verify.md, as whoever copies them has them: the files, the server from npm, the steps of the workflow.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { root } from '../support/source.ts'
import { tempDir } from '../support/temp-dir.ts'

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const page = await readFile(join(root, 'docs/verify.md'), 'utf8')
const examples = [...page.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => text)

interface Workflow {
  readonly on: readonly string[]
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: {
    readonly verify: {
      readonly steps: readonly {
        readonly uses?: string
        readonly run?: string
        readonly with?: Readonly<Record<string, unknown>>
      }[]
    }
  }
}

const workflow = parse(examples.find((text) => text.includes('runs-on:')) ?? '') as Workflow
const { steps } = workflow.jobs.verify
const verifyStep = steps.find(({ run }) => run?.startsWith('sallyport verify') === true)?.run ?? ''

/** The named files of the page, and the packages that are here. */
const copyTo = async (folder: string): Promise<void> => {
  for (const text of examples) {
    const [, name] = /^# (\S+\.yaml)\n/.exec(text) ?? []
    if (name === undefined) continue
    await mkdir(dirname(join(folder, name)), { recursive: true, mode: 0o755 })
    await writeFile(join(folder, name), text, { mode: 0o644 })
  }
  await mkdir(join(folder, 'docs'))
  await writeFile(join(folder, 'docs', 'letter.txt'), 'a letter')
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
}

/** Runs it until the first of its subjects is tried: files and options fit one another then. */
const runToFirst = async (folder: string, command: string): Promise<string> => {
  const [name, ...args] = command.split(' ')
  expect(name).toBe('sallyport')
  const env = { HOME: folder, PATH: process.env['PATH'] }
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exit = once(child, 'exit')
  let said = ''
  let isAsked = false
  for await (const chunk of child.stderr) {
    said += String(chunk)
    if (!isAsked && /^\d+\/\d+ /m.test(said)) isAsked = child.kill('SIGTERM')
  }
  expect(await exit, said).toEqual([3, null])
  return said
}

test('the workflow’s files, options and steps fit one another', async () => {
  await using at = await tempDir()
  await copyTo(at.path)
  // Each shipped profile and the example’s, under every driver that is here, and its server.
  expect(await runToFirst(at.path, verifyStep)).toMatch(/^\d+\/(9|17) \S/m)
  const [, written] = /--out (\S+)$/.exec(verifyStep) ?? []
  const upload = steps.find(({ uses }) => uses?.includes('upload-sarif'))?.with?.['sarif_file']
  expect(upload).toBe(written)
  expect(workflow.permissions).toMatchObject({ 'security-events': 'write' })
  const names = steps.map(({ run, uses }) => uses ?? run?.split(' ').slice(0, 3).join(' '))
  expect(names).toEqual([
    'actions/checkout@v4',
    'actions/setup-node@v4',
    'sudo apt-get update',
    'sudo sysctl --write',
    'npm install --global',
    'npm ci',
    'sallyport doctor',
    'sallyport verify --all',
    'github/codeql-action/upload-sarif@v3',
  ])
})

test('the container’s files and options fit one another', async () => {
  await using at = await tempDir()
  await copyTo(at.path)
  const [, command = ''] = /^ {2}(sallyport verify --all .*)$/m.exec(page) ?? []
  expect(await runToFirst(at.path, command)).toMatch(/^\d+\/(8|16) \S/m)
})
