// What really reached a server: a fixture in its sandbox writes down every byte, in a folder that outlives it.
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { JournalRecord } from '../../src/journal/record.ts'
import { beginning, listSegments, readSegment } from '../../src/journal/segments.ts'
import { fixture } from './daemon.ts'
import { tempDir } from './temp-dir.ts'

export interface Witness extends AsyncDisposable {
  /** The folder that servers write to */
  readonly source: string
  /** The mount through which servers write */
  readonly mount: object
  /** A server's entry that runs the fixture; `from` is what it is from the start */
  entry(name: string, more?: object, from?: readonly string[]): object
  /** The requests `tools/call` that reached the server of that name, over all its lives, as they came */
  calls(name: string): readonly string[]
  /** Every line that reached it */
  lines(name: string): readonly string[]
}

/** A folder for what servers write down; every sandbox's user may write to it. */
export async function witness(): Promise<Witness> {
  const outer = await tempDir()
  await chmod(outer.path, 0o755)
  const source = join(outer.path, 'seen')
  await mkdir(source)
  await chmod(source, 0o777)
  const lines = (name: string): readonly string[] => {
    const path = join(source, `${name}.lines`)
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
  }
  const mount = { source, target: '/seen', access: 'write', reason: 'what it was sent' }
  return {
    source,
    mount,
    entry: (name, more = {}, from = []) =>
      fixture('witness', {
        args: ['/app/witness.mjs', `/seen/${name}`, ...from],
        profile: 'workspace-write',
        mounts: [mount],
        ...more,
      }),
    lines,
    calls: (name) => lines(name).filter((line) => line.includes('"method":"tools/call"')),
    [Symbol.asyncDispose]: () => outer[Symbol.asyncDispose](),
  }
}

/** Every record of the journal in a state folder, each checked against the one before it. */
export function recordsOf(stateDir: string): readonly JournalRecord[] {
  const directory = join(stateDir, 'journal')
  const records: JournalRecord[] = []
  let head = beginning
  for (const segment of listSegments(directory)) {
    const { end, flaw } = readSegment(directory, segment, head, null, (record) => records.push(record))
    if (flaw !== null) throw new Error(`segment ${segment}:${flaw.line}: ${flaw.detail}`)
    head = end
  }
  return records
}

/** Bodies of the records of one type. */
export const bodiesOf = (stateDir: string, type: string): readonly Record<string, unknown>[] =>
  recordsOf(stateDir)
    .filter((record) => record.type === type)
    .map(({ body }) => body as Record<string, unknown>)
