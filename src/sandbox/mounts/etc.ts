// The few files of /etc that programs do not start without; none of them says anything of the host.
import type { EgressEndpoint } from '../../schema/egress.ts'
import type { DataFile } from '../spec.ts'

const lines = (target: string, ...content: string[]): DataFile => ({
  target,
  content: content.map((line) => `${line}\n`).join(''),
  mode: 0o444,
})

/** Written into every sandbox: two users, one host name, and no resolver to ask. */
export const etcFiles: readonly DataFile[] = [
  lines(
    '/etc/passwd',
    'root:x:0:0:root:/root:/usr/sbin/nologin',
    'user:x:1000:1000:user:/home/user:/bin/sh',
    'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin',
  ),
  lines('/etc/group', 'root:x:0:', 'user:x:1000:', 'nogroup:x:65534:'),
  lines('/etc/hosts', '127.0.0.1 localhost sandbox', '::1 localhost sandbox'),
  lines('/etc/nsswitch.conf', 'passwd: files', 'group: files', 'hosts: files dns'),
  lines('/etc/resolv.conf', 'options timeout:1 attempts:1'),
]

const resolverFile = lines('/etc/resolv.conf', 'nameserver 127.0.0.53', 'options timeout:1 attempts:1')

/**
 * The same files where the sandbox has a resolver: its own, which knows the granted names and asks nobody. Exact names stand
 * in /etc/hosts as well, with the addresses that it would say, so that who looks there first need not ask.
 */
export const withResolver = (
  files: readonly DataFile[],
  grants: readonly EgressEndpoint[],
): readonly DataFile[] => {
  const named = exactNames(grants)
    .map((host, index) => ({ host, address: `198.18.${(index + 1) >> 8}.${(index + 1) & 255}` }))
    .filter(({ host }) => !/^(localhost|sandbox)$/.test(host))
    .map(({ host, address }) => `${address} ${host}\n`)
  return files.map((file) => {
    if (file.target === resolverFile.target) return resolverFile
    return file.target === '/etc/hosts' ? { ...file, content: file.content + named.join('') } : file
  })
}

// In init's order: it counts addresses up as it is told of new names
const exactNames = (grants: readonly EgressEndpoint[]): readonly string[] => [
  ...new Set(grants.map(({ host }) => host).filter((host) => !host.startsWith('*.'))),
]
