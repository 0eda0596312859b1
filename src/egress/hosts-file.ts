// The machine's own list of names, which stands before any server's word as it does for every other program.
import { readFile } from 'node:fs/promises'
import { canonicalHost } from '../lib/host-name.ts'

/** Returns the addresses that /etc/hosts gives for exactly this name, in its order; none where there is no such file. */
export async function hostsFileAddresses(host: string): Promise<readonly string[]> {
  const text = await readFile('/etc/hosts', 'utf8').catch(() => '')
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    return names.some((name) => canonicalHost(name) === host) ? [address] : []
  })
}
