// Learns in a process of its own, which may be another user's: `run-learn.ts OPTIONS` prints what came of it as JSON.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { briefDrive, messagesDrive } from '../../src/verify/learn/drive.ts'
import { learnProfile } from '../../src/verify/learn/learn.ts'
import type { Asked } from './learning.ts'

const { calls, home, env, ...asked } = JSON.parse(process.argv[2] ?? '{}') as Asked
const folder = home ?? (await mkdtemp(join(tmpdir(), 'sp-home-')))
try {
  const hello = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  }
  const drive = messagesDrive('the calls of a test', [
    { jsonrpc: '2.0', id: 'hello', method: 'initialize', params: hello },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    ...(calls ?? []).map(([name, args], id) => {
      return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } }
    }),
  ])
  const learned = await learnProfile({
    read: [],
    write: [],
    allow: [],
    network: 'observe',
    pass: [],
    set: {},
    args: [],
    name: 'learned',
    command: process.execPath,
    ...asked,
    host: { env: { LANG: 'C.UTF-8', ...env }, home: folder, uid: process.getuid?.() ?? -1 },
    drive: calls === undefined ? briefDrive : drive,
  })
  process.stdout.write(JSON.stringify(learned))
} finally {
  if (home === undefined) await rm(folder, { recursive: true })
}
