// A daemon whose state folder a shell can fill, take away and mend: for root a small disk of its own, in a mount namespace.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { Client } from '../../src/client/client.ts'
import { main, type Place } from './daemon.ts'
import { eventually } from './eventually.ts'
import { isRoot } from './user.ts'

export interface OwnDisk extends AsyncDisposable {
  /** The operator's connection */
  readonly client: Client
  /** Runs shell commands in the state folder, as whoever may mount there; returns what they print */
  sh(commands: string): Promise<string>
  /** Ends the daemon with SIGTERM and starts it anew on the same disk */
  restart(): Promise<Client>
}

const bytes = 2_097_152

/**
 * Serves a place from a tmpfs of two megabytes. For an ordinary user there is none: in a user namespace root's files would be
 * nobody's, and nothing that nobody owns is trusted. The shell's `$pid` is the daemon's.
 */
export async function ownDisk(at: Place, env: Readonly<Record<string, string>> = {}): Promise<OwnDisk> {
  await mkdir(at.stateDir, { mode: 0o700 })
  const script = `
    ${isRoot ? `mount -t tmpfs -o size=${bytes},mode=700 tmpfs "$1" || exit 1` : ''}
    cd "$1" || exit 1
    log="$2"; shift 2
    start() { "$@" serve >/dev/null 2>>"$log" & pid=$!; }
    stop() { kill "$pid" 2>/dev/null; wait "$pid"; }
    start "$@"
    echo
    while read -r line; do
      if [ "$line" = restart ]; then stop; start "$@"; else eval "$line" 2>&1; fi
      printf '\\0\\n'
    done
    stop`
  const [program = '', ...namespace] = isRoot
    ? ['unshare', '--mount', '--propagation', 'private', 'sh']
    : ['sh']
  const shell = spawn(
    program,
    [...namespace, '-c', script, 'sh', at.stateDir, `${at.folder}/log`, process.execPath, main],
    { env: { ...at.env, ...env }, cwd: at.folder, stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const lines = createInterface({ input: shell.stdout })[Symbol.asyncIterator]()
  if ((await lines.next()).done === true) throw new Error('no namespace with a disk of its own can be made')
  // The hosts' door opens last.
  const reach = (): Promise<Client> =>
    eventually(async () => {
      await using _host = await at.connect('host')
      return await at.connect('operator')
    })
  const sh = async (commands: string): Promise<string> => {
    shell.stdin.write(`${commands.replaceAll('\n', ' ')}\n`)
    let said = ''
    for (let line = await lines.next(); line.done !== true && line.value !== '\0'; line = await lines.next())
      said += `${line.value.replace(/\0$/, '')}\n`
    return said
  }
  return {
    client: await reach(),
    sh,
    restart: async () => {
      await sh('restart')
      return reach()
    },
    async [Symbol.asyncDispose]() {
      const ended = once(shell, 'exit')
      shell.stdin.end()
      await ended
    },
  }
}
