// Runs a script of tests in a network and with a resolver of its own, where any address is this machine's and none is outside.
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { tempDir } from './temp-dir.ts'
import { isRoot, ordinaryUid } from './user.ts'
import { patienceMs } from './patience.ts'

/** Addresses that are local there without being any interface's own, as a public server's are to the code under test. */
const networks = ['93.184.216.0/24', '10.0.0.0/8', '2606:2800:220:1::/64']

const repository = fileURLToPath(new URL('../../', import.meta.url))

/** Has the script run by an ordinary user, who may take low ports there, in a copy of the clone's place that anybody may enter. */
const asOrdinary = [
  'mkdir "$1/clone" && chmod 755 "$1" && mount --bind "$4" "$1/clone"',
  'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start',
  `exec setpriv --reuid=${ordinaryUid} --regid=${ordinaryUid} --clear-groups "$2" "$3"`,
]

/** Runs `test/<script>`, whose last line of output is JSON, with 127.0.0.1 as its name server, and returns that value. */
export async function runApart(
  script: string,
  hosts = '127.0.0.1 localhost\n',
  user: 'self' | 'ordinary' = 'self',
): Promise<unknown> {
  await using dir = await tempDir()
  await writeFile(join(dir.path, 'resolv.conf'), 'nameserver 127.0.0.1\n')
  await writeFile(join(dir.path, 'hosts'), hosts)
  const seen = (path: string): string =>
    user === 'ordinary' && path.startsWith(repository)
      ? join(dir.path, 'clone', path.slice(repository.length))
      : path
  const routes = networks.map((it) => `ip ${it.includes(':') ? '-6 ' : ''}route add local ${it} dev lo`)
  const steps = [
    'set -e',
    'ip link set lo up',
    ...routes,
    'for file in resolv.conf hosts; do mount --bind "$1/$file" "$(readlink -f /etc/$file)"; done',
    ...(user === 'ordinary' ? asOrdinary : ['exec "$2" "$3"']),
  ]
  const flags = [...(isRoot ? [] : ['--user', '--map-root-user']), '--net', '--mount']
  const { stdout } = await promisify(execFile)(
    'unshare',
    [
      ...flags,
      'sh',
      '-c',
      steps.join('\n'),
      'sh',
      dir.path,
      seen(process.execPath),
      seen(join(repository, 'test', script)),
      repository,
    ],
    { maxBuffer: 1 << 24, timeout: patienceMs },
  )
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as unknown
}
