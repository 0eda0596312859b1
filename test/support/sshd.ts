// A real sshd on loopback with keys of its own, and the ssh that reaches it: for an engine that is reached over ssh.
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import { tempDir } from './temp-dir.ts'

const run = promisify(execFile)

/** Where it is, installed or unpacked; installing it would also start it. */
const sshd = [process.env['SALLYPORT_TEST_SSHD'] ?? '', '/usr/sbin/sshd'].find((path) => existsSync(path))

/** It lets root in as root, so that only root's tests can have it. */
export const canStartSshd = process.getuid?.() === 0 && sshd !== undefined

export interface Sshd extends AsyncDisposable {
  readonly port: number
  /** Folder of an `ssh` that knows the server's key and has one that it lets in, for the front of PATH */
  readonly clientFolder: string
}

/** Starts it with `environment` for every session. */
export const startSshd = async (environment: Readonly<Record<string, string>>): Promise<Sshd> => {
  await using stack = new AsyncDisposableStack()
  const { path } = stack.use(await tempDir())
  const at = (name: string): string => join(path, name)
  for (const name of ['host', 'key'])
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)])
  const port = await freePort()
  const [type, key] = (await readFile(at('host.pub'), 'utf8')).split(' ')
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  const texts: Readonly<Record<string, string>> = {
    server: `Port ${port}
ListenAddress 127.0.0.1
HostKey ${at('host')}
PidFile none
AuthorizedKeysFile ${at('key.pub')}
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
SetEnv ${variables.join(' ')}
`,
    client: `IdentityFile ${at('key')}
IdentitiesOnly yes
UserKnownHostsFile ${at('known')}
GlobalKnownHostsFile /dev/null
`,
    known: `[127.0.0.1]:${port} ${type} ${key}\n`,
    // The user it falls to before anybody is let in, as its package makes it.
    passwd: `${await readFile('/etc/passwd', 'utf8')}sshd:x:998:65534::/run/sshd:/usr/sbin/nologin\n`,
    ssh: `#!/bin/sh\nexec /usr/bin/ssh -F ${at('client')} "$@"\n`,
  }
  for (const [name, text] of Object.entries(texts)) await writeFile(at(name), text)
  await chmod(at('ssh'), 0o755)
  if ((await mkdir('/run/sshd', { recursive: true })) !== undefined)
    stack.defer(async () => rmdir('/run/sshd').catch(() => {}))
  const start = `mount --bind ${at('passwd')} /etc/passwd && exec ${sshd} -D -e -f ${at('server')}`
  const child = spawn('unshare', ['--mount', 'sh', '-c', start], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()))
  stack.defer(async () => {
    child.kill('SIGTERM')
    await eventually(() => child.exitCode !== null || child.signalCode !== null, 5000)
  })
  await eventually(() => said.includes('Server listening') || child.exitCode !== null)
  if (child.exitCode !== null) throw new Error(`sshd ended with ${child.exitCode}: ${said}`)
  const owned = stack.move()
  return { port, clientFolder: path, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
