// The machine's own list of names, which stands before any server's word as it does for every other program.
import { readFile } from 'node:fs/promises'
import { canonicalHost } from '../lib/host-name.ts'

const path = '/etc/hosts'
const keptMs = 1000

type Names = ReadonlyMap<string, readonly string[]>

/** Returns a reader of the addresses that /etc/hosts gives for exactly a name, in its order; it is at most a second old. */
export function hostsFile(): (host: string) => Promise<readonly string[]> {
  let names: Promise<Names> = Promise.resolve(new Map())
  let readAt = Number.NEGATIVE_INFINITY
  return async (host) => {
    if (performance.now() - readAt >= keptMs) {
      readAt = performance.now()
      names = readFile(path, 'utf8').then(namesOf, () => new Map()) // where there is none, it names nobody
    }
    return (await names).get(host) ?? []
  }
}

function namesOf(text: string): Names {
  const names = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [address = '', ...aliases] = line.replace(/#.*/, '').trim().split(/\s+/)
    for (const host of new Set(aliases.map(canonicalHost)))
      if (host !== null) names.set(host, [...(names.get(host) ?? []), address])
  }
  return names
}
