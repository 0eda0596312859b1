// The paths that no configuration grants: what would hand over the user, the machine or Sallyport itself.
import { lstatSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { enough, SallyportError } from '../../errors.ts'
import { errnoOf, isMissing, isShortage } from '../../lib/missing.ts'
import { overlapOf } from '../../lib/path-overlap.ts'
import { words } from '../../lib/words.ts'

/** A path that no mount may be at, above or inside. */
export interface Denial {
  /** As it is written */
  readonly path: string
  /** Where it leads after symbolic links; the path itself where nothing is there */
  readonly real: string
  /** False where nothing is there: then only a writable mount above it is refused, since the server could create it */
  readonly exists: boolean
  /** What it is, a noun phrase */
  readonly what: string
}

/** What the daemon knows of its host, gathered once at its edge. */
export interface DenialFacts {
  /** Sallyport's own runtime, state and config folders, and the config files that were read */
  readonly own: readonly string[]
  /** Home folders beyond those of /etc/passwd: the daemon's own */
  readonly homes: readonly string[]
  /** The daemon's environment, searched for sockets only */
  readonly environment: Readonly<Record<string, string | undefined>>
}

/** The running system's own folders. */
export const kernelAndRuntime = ['/proc', '/sys', '/dev', '/run', '/var/run', '/boot', '/efi', '/lost+found']

/** What hands over the machine. */
export const system = `
  /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssh /etc/ssl/private
  /etc/pki/tls/private /etc/krb5.keytab /etc/security/opasswd /etc/crontab /etc/cron.d /etc/cron.daily /etc/cron.hourly
  /etc/docker /etc/containerd /etc/kubernetes /etc/rancher /etc/cni /etc/systemd /etc/NetworkManager /etc/wireguard
  /etc/letsencrypt /etc/sallyport /var/lib/sallyport /var/lib/docker /var/lib/containerd /var/lib/containers
  /var/lib/kubelet /var/lib/rancher /var/lib/sss /var/lib/systemd /var/spool/cron /var/lib/cloud /tmp/.X11-unix
  /tmp/.ICE-unix
`

/** Below every home, by what they are. Keys and tokens first, then engines, browsers, keyrings, and what was typed. */
export const inHomes: Readonly<Record<string, string>> = {
  'ssh and signing keys':
    '.ssh .gnupg .pki .password-store .config/age .config/sops .minisign .local/share/gnupg',
  'cloud credentials': `
    .aws .azure .config/gcloud .boto .s3cfg .oci .aliyun .config/doctl .config/hcloud .config/scaleway .config/linode-cli
    .config/rclone .config/flyctl .fly .config/heroku .terraform.d .terraformrc .pulumi .vault-token .config/op .1password
    .config/1Password .config/Bitwarden .config/gh .config/glab-cli .config/hub .config/github-copilot`,
  'package registry credentials': `
    .npmrc .yarnrc .yarnrc.yml .pypirc .config/pip .pip .netrc _netrc .git-credentials .config/git/credentials .gem/credentials
    .cargo/credentials .cargo/credentials.toml .composer/auth.json .config/composer/auth.json .m2/settings.xml
    .m2/settings-security.xml .gradle/gradle.properties .nuget .config/NuGet .bundle/config .hex`,
  'container engine and cluster credentials': `
    .docker .kube .config/containers .local/share/containers .minikube .config/helm .config/k9s .rancher`,
  'database credentials': '.pgpass .my.cnf .mylogin.cnf .mongorc.js .config/redis',
  'browser profiles and sessions': `
    .mozilla .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi
    .config/opera .cache/mozilla snap/firefox snap/chromium .thunderbird .config/Slack .config/discord .config/Signal`,
  'key rings and session sockets': `
    .local/share/keyrings .local/share/kwalletd .Xauthority .ICEauthority .dbus .config/systemd .config/autostart
    .config/environment.d`,
  'what was typed in shells': `
    .bash_history .zsh_history .zhistory .history .local/share/fish/fish_history .python_history .node_repl_history
    .psql_history .mysql_history .sqlite_history .lesshst .viminfo .local/share/mc`,
  'agent and assistant credentials': `
    .claude .claude.json .codex .gemini .config/anthropic .config/openai .cursor/mcp.json .config/zed .config/Claude
    .continue .aider.conf.yml`,
  'Sallyport’s own files': '.config/sallyport .local/state/sallyport',
}

/** Variables that name a socket of somebody who would act for the server. */
export const socketVariables = `
  SSH_AUTH_SOCK SSH_AGENT_LAUNCHER GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS DOCKER_HOST
  CONTAINER_HOST PODMAN_HOST CONTAINERD_ADDRESS BUILDKIT_HOST WAYLAND_DISPLAY PULSE_SERVER PIPEWIRE_REMOTE
  TMUX SWAYSOCK I3SOCK NIRI_SOCKET VSCODE_IPC_HOOK VSCODE_IPC_HOOK_CLI VSCODE_GIT_IPC_HANDLE SALLYPORT_RUNTIME_DIR
  SALLYPORT_STATE_DIR XDG_RUNTIME_DIR
`

/**
 * Returns the denials that mounts of these real source paths must be held against, with where each leads now.
 *
 * Call it for each launch: links and homes change. Own homes are always looked at, so that a link out of one is
 * followed; other people's only where a source touches them, since there may be thousands.
 */
export const findDenials = (facts: DenialFacts, sources: readonly string[]): readonly Denial[] => {
  const find = finder()
  const touched = peoplesHomes(find).filter((home) =>
    sources.some((source) => overlapOf(source, home) !== 'apart'),
  )
  const homes = new Set([...facts.homes.map((home) => find(home).real), ...touched])
  const wanted = new Map<string, string>()
  for (const path of kernelAndRuntime) wanted.set(path, 'the running system’s files')
  for (const path of words(system)) wanted.set(path, 'a file of the system’s administration')
  for (const path of sockets(facts.environment)) wanted.set(path, 'an agent’s or a session’s socket')
  for (const home of homes)
    for (const [what, names] of Object.entries(inHomes))
      for (const name of words(names)) wanted.set(join(home, name), what)
  for (const path of facts.own) wanted.set(path, 'a file or folder of Sallyport’s own')
  return [...wanted].map(([path, what]) => ({ path, what, ...find(path) }))
}

// Only people and root have secrets at home; the homes of system users are folders such as /usr/sbin.
const peoplesHomes = (find: Find): string[] =>
  users()
    .split('\n')
    .flatMap((line) => {
      const [, , uid, , , home] = line.split(':')
      const isPerson = uid === '0' || (Number(uid) >= 1000 && Number(uid) !== 65_534)
      return isPerson && home !== undefined && home.startsWith('/') && home !== '/' ? [find(home).real] : []
    })

// A root without the file has no people; where it can't be read, their homes would be anybody's.
const users = (): string => {
  try {
    return readFileSync('/etc/passwd', 'utf8')
  } catch (error) {
    if (isMissing(error)) return ''
    const code = errnoOf(error) ?? 'unknown'
    const isShort = isShortage(error)
    throw new SallyportError(
      isShort ? 'ERR_SHORTAGE' : 'ERR_SANDBOX_SETUP',
      `/etc/passwd can't be read (${code}), so whose homes are not to be mounted is not known; nothing was started; ${isShort ? enough : 'see that the daemon’s user may read it'}`,
      { path: '/etc/passwd', errno: code },
      { cause: error },
    )
  }
}

const sockets = (environment: DenialFacts['environment']): string[] =>
  words(socketVariables).flatMap((name) => {
    const path = /(?:^|unix:(?:path=|\/\/)?|,path=)(\/[^,;:\0]*)/.exec(environment[name] ?? '')?.[1]
    return path === undefined || path === '/' ? [] : [path.replace(/\/+$/, '')]
  })

type Place = Pick<Denial, 'real' | 'exists'>
type Find = (path: string) => Place

// A hundred names share a few folders, so each is looked up once, and nothing in one that is not there: a look-up that fails is dear.
const finder = (): Find => {
  const found = new Map<string, Place>()
  const find = (path: string): Place => {
    const place = found.get(path) ?? lookUp(path, find)
    found.set(path, place)
    return place
  }
  return find
}

// Where the path is, or would be: its deepest existing folder with links resolved, and the rest as written. What cannot be looked
// at (a home that is closed to us) is taken to exist: it is not ours to give away.
const lookUp = (path: string, find: Find): Place => {
  const parent = dirname(path)
  if (parent === path) return { real: path, exists: true }
  const folder = find(parent)
  const real = join(folder.real, basename(path))
  if (!folder.exists) return { real, exists: false }
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return { real, exists: false }
    return { real: realpathSync.native(path), exists: true }
  } catch (error) {
    return { real, exists: !isMissing(error) }
  }
}
