// Programs of others to stand beside: from npm into a folder that is removed, each in the version that is named here.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
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

/** With its version, as figures name it. */
export const nameOf = (peer: Peer): string => `${peer} ${peers[peer].version}`

/** A folder of peers that all scripts of a run share, so that each is installed once */
export const sharedPeers = 'SALLYPORT_BENCH_PEERS'

/** Installs it below the folder, or the one of the whole run, without its install scripts. Returns its program's path, or `{ absent }` with the reason. */
export async function install(peer: Peer, folder: string): Promise<string | { readonly absent: string }> {
  const { package: name, version, program, needs } = peers[peer]
  const missing = needs.filter(
    (tool) => !(process.env['PATH'] ?? '').split(':').some((at) => existsSync(join(at, tool))),
  )
  if (missing.length > 0) return { absent: `it needs ${missing.join(', ')}` }
  const at = join(process.env[sharedPeers] ?? folder, peer)
  const path = join(at, 'node_modules/.bin', program)
  if (existsSync(path)) return path
  if (existsSync(`${at}.absent`)) return { absent: readFileSync(`${at}.absent`, 'utf8') }
  const args = [
    'install',
    '--prefix',
    at,
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--fetch-retries=1',
    `${name}@${version}`,
  ]
  try {
    await promisify(execFile)('npm', args, { timeout: 180_000, cwd: folder })
  } catch (error) {
    const absent = `npm could not install it: ${whyOf((error as Error).message)}`
    writeFileSync(`${at}.absent`, absent) // once for all of a run's scripts
    return { absent }
  }
  return path
}

/** What npm says of it, without its codes and where its log lies. */
function whyOf(said: string): string {
  const lines = said.trim().split('\n')
  const told = lines.flatMap(
    (line) => /^npm (?:error|ERR!) (?!code |errno |syscall |A complete log|$)(.+)/.exec(line)?.[1] ?? [],
  )
  return told[0] ?? lines.at(-1) ?? 'without a word'
}
