// Prints what a sandbox shows of itself, with a package, a writable mount, and nothing else granted.
import { chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Mount } from '../../src/sandbox/spec.ts'
import { planOf, run } from './plan.ts'
import { allowed, resolve } from './settings.ts'

const isRoot = process.getuid?.() === 0
const uid = 47_892

/** Runs view.sh as a server and returns what it printed; `isKept` takes mounts away, for a broken arm. */
export const viewOf = async (isKept: (mount: Mount) => boolean = () => true): Promise<string> => {
  const project = mkdtempSync(join(tmpdir(), 'sp-view-'))
  mkdirSync(join(project, '.git'))
  mkdirSync(join(project, 'deep/.vscode'), { recursive: true })
  writeFileSync(join(project, '.git/config'), '[core]\n')
  if (isRoot)
    for (const name of ['.', '.git', '.git/config', 'deep']) chownSync(join(project, name), uid, uid)
  try {
    const server = {
      command: 'sh',
      args: ['/app/view.sh'],
      package: {
        source: fileURLToPath(new URL('../fixtures/view', import.meta.url)),
        target: '/app',
        with: [],
        digest: null,
      },
      mounts: [{ source: project, target: '/workspace', access: 'write' as const, reason: 'a test' }],
      runAs: isRoot ? uid : null,
    }
    const { spec } = await resolve({ server, settings: { allowedCommands: [allowed('sh')] } })
    // A plan has /usr already.
    const mounts = spec.mounts.filter((mount) => mount.target !== '/usr' && isKept(mount))
    const { stdout, stderr, exit } = await run(await planOf([], { spec: { ...spec, mounts } }))
    if (exit.code !== 0) throw new Error(`view.sh ended with ${JSON.stringify(exit)}: ${stderr}`)
    return stdout
  } finally {
    rmSync(project, { recursive: true, force: true })
  }
}

if (process.argv[1]?.endsWith('show-view.ts') === true) process.stdout.write(await viewOf())
