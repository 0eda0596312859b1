// Programs of others to stand beside: from npm into a folder that is removed, each in the version that is named here.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Package and version; the name of its program. */
export const peers = {
  srt: {
    package: '@anthropic-ai/sandbox-runtime',
    version: '0.0.83',
    program: 'srt',
    needs: ['bwrap', 'socat', 'rg'],
  },
  supergateway: { package: 'supergateway', version: '4.0.0', program: 'supergateway', needs: [] },
  'mcp-proxy': { package: 'mcp-proxy', version: '6.7.19', program: 'mcp-proxy', needs: [] },
} as const

export type Peer = keyof typeof peers

/** Installs it below the folder, without its install scripts. Returns its program's path, or `{ absent }` with the reason. */
export async function install(peer: Peer, folder: string): Promise<string | { readonly absent: string }> {
  const { package: name, version, program, needs } = peers[peer]
  const missing = needs.filter(
    (tool) => !(process.env['PATH'] ?? '').split(':').some((at) => existsSync(join(at, tool))),
  )
  if (missing.length > 0) return { absent: `it needs ${missing.join(', ')}` }
  const at = join(folder, peer)
  const args = [
    'install',
    '--prefix',
    at,
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    `${name}@${version}`,
  ]
  try {
    await promisify(execFile)('npm', args, { timeout: 180_000, cwd: folder })
  } catch (error) {
    return { absent: `npm could not install it: ${(error as Error).message.trim().split('\n').at(-1)}` }
  }
  return join(at, 'node_modules/.bin', program)
}
