// A server that calls an API with a token from its environment, unchanged, and never has the token.
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Api, openApi } from '../support/api.ts'
import { rootOf } from './root.ts'
import { canary, startDaemon, type Stage } from './stage.ts'
import { short, type Table } from './table.ts'
import { callDeadlineMs } from './work.ts'

/** Starts an API that wants the token, and a daemon whose server has what stands for it. */
export async function apiTable(stage: Stage): Promise<Table> {
  const api = await openApi()
  stage.onEnd(() => api[Symbol.asyncDispose]())
  const { client } = await startDaemon(stage, await configFor(stage, api))
  const call = async (tool: string, args: Record<string, unknown>): Promise<Record<string, unknown>> => {
    const waiting = { signal: AbortSignal.timeout(callDeadlineMs) }
    const { data } = await client.call('tools/call', { server: 'api', tool, arguments: args }, waiting)
    return (data as { readonly structuredContent: Record<string, unknown> }).structuredContent
  }
  const { status } = await call('ask', { url: `${api.url}/user` })
  const got = api.asked[0]?.authorization ?? 'nothing'
  const { value } = await call('variable', { name: 'API_TOKEN' })
  // In halves, so that the question itself is not what is found.
  const halves = [canary.slice(0, 6), canary.slice(6)]
  const { found } = (await call('search', { parts: halves })) as { readonly found: readonly string[] }
  const { found: memory } = (await call('heap', { parts: halves })) as { readonly found: number }
  const placeholder = [String(value).slice(0, 6), String(value).slice(6)]
  const { found: stands } = (await call('heap', { parts: placeholder })) as { readonly found: number }
  const elsewhere = await call('dial', { host: 'exfiltrate.example.org', port: 443 })
  const rows: readonly (readonly [string, string, boolean])[] = [
    ['the API got', `Authorization: ${got}`, status === 200 && got === `Bearer ${canary}`],
    ['process.env.API_TOKEN in the server', String(value), value !== canary && String(value).length === 40],
    ['the token in /proc/*/environ, files, process.env', found.join(', ') || 'nowhere', found.length === 0],
    [
      'the token in a snapshot of the server’s heap',
      memory === 0 ? 'nowhere' : `${memory} times`,
      memory === 0,
    ],
    ['what stands for it, in such a snapshot', `${stands} times`, stands > 0],
    [
      'a host that nobody listed',
      typeof elsewhere['failed'] === 'string' ? elsewhere['failed'] : 'reached',
      elsewhere['failed'] !== undefined,
    ],
  ]
  return {
    title:
      'A server whose code says `Authorization: Bearer ${process.env.API_TOKEN}`, and a token that it never has',
    head: ['', 'seen'],
    rows: rows.map(([what, seen, isAsPromised]) => ({ cells: [what, short(seen, 56)], isAsPromised })),
  }
}

async function configFor(stage: Stage, { host, address, port, caFile }: Api): Promise<string> {
  const folder = await stage.folder(tmpdir(), 'sallyport-demo-')
  const target = { host, port, address, private: true, reason: 'the API of the demo, on this machine' }
  const profile = {
    version: 1,
    name: 'api',
    extends: 'node',
    widens: true,
    network: { mode: 'allowlist', allow: [target] },
    credentials: ['egress'],
  }
  await mkdir(join(folder, 'profiles'), { mode: 0o700 })
  await writeFile(join(folder, 'profiles', 'api.yaml'), JSON.stringify(profile), { mode: 0o600 })
  const { commands, server } = await rootOf(stage)
  const config = {
    version: 1,
    allowed_commands: commands,
    credentials: { demo: { env: 'DEMO_API_TOKEN' } },
    rules: [{ permission: 'mcp:api:*', action: 'allow' }],
    servers: {
      api: {
        command: 'node',
        ...server,
        args: ['/app/reaches-out.mjs'],
        package: { source: fileURLToPath(new URL('../fixtures/servers', import.meta.url)), target: '/app' },
        justification: 'calls an API',
        profile: 'api',
        trust: 'trusted',
        acceptance: 'first-use',
        egress: [{ ...target, tls: true }],
        egress_when: 'calling',
        credentials: [
          { use: 'demo', inject: 'egress', as: 'API_TOKEN', hosts: [`${host}:${port}`], ca_file: caFile },
        ],
      },
    },
  }
  const path = join(folder, 'sallyport.yaml')
  await writeFile(path, JSON.stringify(config), { mode: 0o600 })
  return path
}
