// Servers that may reach what the profile `open` allows them: their place, their daemon, and what its journal says of them.
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Client } from '../../src/client/client.ts'
import { configOf, fixture, place, type Place } from './daemon.ts'

/** What the profile `open` has beyond `node`. */
interface Ceiling {
  /** Entries of its `network.allow` */
  readonly allow: readonly object[]
  /** Ways in which secrets may be had; none unless said */
  readonly credentials?: readonly string[]
}

/** A server's entry that runs the fixture which connects and fetches, under the profile `open`. */
export const reachesOut = (egress: readonly object[], more: object = {}): object =>
  fixture('reaches-out', { profile: 'open', egress, ...more })

/** Makes a place with these servers and the profile, and no daemon; `more` goes into the configuration. */
export async function reachingPlace(
  servers: Readonly<Record<string, object>>,
  { allow, credentials = [] }: Ceiling,
  more: object = {},
): Promise<Place> {
  const made = await place(configOf(servers, more))
  await mkdir(join(made.folder, 'profiles'), { mode: 0o700 })
  const network = { mode: 'allowlist', allow }
  const profile = { version: 1, name: 'open', extends: 'node', widens: true, network, credentials }
  await writeFile(join(made.folder, 'profiles', 'open.yaml'), JSON.stringify(profile), { mode: 0o600 })
  return made
}

/** Calls a tool and returns its structured content. */
export const callThrough =
  (client: () => Client) =>
  async (
    server: string,
    tool: string,
    args: Record<string, unknown> = {},
  ): Promise<Record<string, unknown>> => {
    const { data } = await client().call('tools/call', { server, tool, arguments: args })
    return (data as { structuredContent: Record<string, unknown> }).structuredContent
  }

/** One record, as far as tests look at it. */
export interface Recorded {
  readonly type: string
  readonly body: Record<string, unknown>
}

/** Every record of the daemon's journal so far. What is being written while this reads, has no end of line yet. */
export const recordsOf = ({ stateDir }: Pick<Place, 'stateDir'>): readonly Recorded[] =>
  readdirSync(join(stateDir, 'journal'))
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) =>
      readFileSync(join(stateDir, 'journal', name), 'utf8')
        .split('\n')
        .slice(0, -1),
    )
    .map((line) => JSON.parse(line) as Recorded)

/** The records of one type about one server. */
export const recordsAbout = (
  at: Pick<Place, 'stateDir'>,
  type: string,
  server: string,
): readonly Recorded[] =>
  recordsOf(at).filter((record) => record.type === type && record.body['server'] === server)
