// The machine's own disk: a Debian as debootstrap makes it, with systemd, one user, and a unit that does the work and ends the machine.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Base {
  readonly disk: string
  readonly kernel: string
  readonly initrd: string
}

const release = 'bookworm'
const packages = `linux-image-amd64 systemd-sysv dbus dbus-user-session libpam-systemd udev kmod
  bubblewrap ca-certificates curl fontconfig fonts-dejavu-core gcc git iproute2 libc6-dev
  openssl procps python3 util-linux`.split(/\s+/)

const unit = `[Unit]
Description=What the machine was started for
After=multi-user.target
SuccessAction=poweroff-force
FailureAction=poweroff-force

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mkdir -p /job && mount /dev/vdb /job && exec /job/test/machine/job.sh </dev/null >/dev/ttyS1 2>&1'

[Install]
WantedBy=graphical.target
`

/** The disk with kernel and initrd; made once, in some five minutes, and kept for as long as its recipe stays the same. */
export async function base(): Promise<Base> {
  const recipe = createHash('sha256').update(await readFile(fileURLToPath(import.meta.url)))
  const kept = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'sallyport-machine')
  const folder = join(kept, recipe.digest('hex').slice(0, 16))
  const made = {
    disk: join(folder, 'disk.img'),
    kernel: join(folder, 'vmlinuz'),
    initrd: join(folder, 'initrd.img'),
  }
  const isThere = await readdir(folder).then(
    () => true,
    () => false,
  )
  if (!isThere) await make(kept, folder)
  return made
}

async function make(kept: string, folder: string): Promise<void> {
  process.stderr.write(`machine: making a Debian ${release} in ${folder}, once\n`)
  await rm(kept, { recursive: true, force: true }) // of an earlier recipe
  await mkdir(kept, { recursive: true })
  const draft = await mkdtemp(join(kept, 'draft-'))
  const root = await mkdtemp(join(tmpdir(), 'sallyport-machine-root-'))
  try {
    await run('debootstrap', ['--variant=minbase', `--include=${packages.join(',')}`, release, root])
    await run('chroot', [root, 'useradd', '--create-home', '--shell', '/bin/bash', 'ann'])
    await writeFile(join(root, 'etc/systemd/system/job.service'), unit)
    await run('chroot', [root, 'systemctl', 'enable', 'job.service'])
    await run('chroot', [root, 'systemctl', 'mask', 'apt-daily.timer', 'apt-daily-upgrade.timer'])
    for (const name of await readdir(join(root, 'boot'))) {
      if (name.startsWith('vmlinuz-')) await copyFile(join(root, 'boot', name), join(draft, 'vmlinuz'))
      if (name.startsWith('initrd.img-')) await copyFile(join(root, 'boot', name), join(draft, 'initrd.img'))
    }
    await run('mke2fs', ['-q', '-t', 'ext4', '-d', root, join(draft, 'disk.img'), '5G'])
    await rename(draft, folder)
  } finally {
    await rm(root, { recursive: true, force: true })
    await rm(draft, { recursive: true, force: true })
  }
}

/** Runs a program to its end. Throws where it is not installed, with what mends that, or with what it printed where it fails. */
export async function run(program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4000)))
  const [status] = (await once(child, 'close').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    throw new Error(`${program} is not installed; run apt-get install debootstrap e2fsprogs qemu-system-x86`)
  })) as [number | null]
  if (status !== 0) throw new Error(`${program} ended with status ${status}: ${said}`)
}
