// Grants that are legal and that somebody should have thought about twice, with why.
import { own } from '../lib/own.ts'
import type { Step } from '../schema/problem.ts'
import type { Profile } from '../schema/types.gen.ts'
import { liesWithin } from './narrowing.ts'

export interface Danger {
  readonly at: readonly Step[]
  readonly got: string
  readonly why: string
}

/** Folders that no grant should reach into, nor hold, and what is in them. */
const places: readonly (readonly [path: string, why: string])[] = [
  ['/etc', 'it holds the machine’s accounts, keys and settings; name the file that is needed'],
  ['/home', 'it holds people’s keys, tokens and shells; name the folder that is needed'],
  ['/root', 'it holds the administrator’s keys, tokens and shells'],
  ['/run', 'it holds sockets of services and of people’s sessions'],
  ['/var/run', 'it holds sockets of services and of people’s sessions'],
  ['/var/lib', 'it holds the data of services, container engines and Sallyport itself'],
  ['/proc', 'it shows and steers the host’s processes and kernel'],
  ['/sys', 'it shows and steers the host’s kernel and devices'],
  ['/dev', 'it holds the host’s devices'],
  ['/boot', 'it holds the kernel'],
  ['/tmp', 'every user of the machine puts files and sockets there'],
]

/** Narrow places in a dangerous folder that are widely known to hold nothing secret. */
const harmless: readonly string[] = [
  '/etc/alternatives',
  '/etc/ca-certificates',
  '/etc/fonts',
  '/etc/localtime',
  '/etc/mime.types',
  '/etc/pki/ca-trust',
  '/etc/pki/tls/certs',
  '/etc/ssl/certs',
]

const sockets = /(\.(sock|socket)|[-_]sock(et)?)$/

const secrets =
  /(^|\/)(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.config\/gcloud|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.password-store)(\/|$)/

/** Domains under which anybody gets a name of their own, so that a pattern over them is a way out to everybody. */
const sharedSuffixes: Readonly<Record<string, string>> = {
  'amazonaws.com': 'buckets, functions and hosts',
  'azurewebsites.net': 'web sites',
  'blob.core.windows.net': 'storage',
  'cloudflare.net': 'whatever stands behind the network',
  'cloudfront.net': 'distributions',
  'fastly.net': 'whatever stands behind the network',
  'firebaseapp.com': 'web sites',
  'github.io': 'web sites',
  'googleapis.com': 'storage and other services of every customer',
  'googleusercontent.com': 'files of every customer',
  'herokuapp.com': 'web sites',
  'ngrok.io': 'tunnels',
  'ngrok-free.app': 'tunnels',
  'netlify.app': 'web sites',
  'pages.dev': 'web sites',
  's3.amazonaws.com': 'buckets',
  'storage.googleapis.com': 'buckets',
  'trycloudflare.com': 'tunnels',
  'vercel.app': 'web sites',
  'windows.net': 'storage and other services of every customer',
  'workers.dev': 'programs',
}

/** What a system call gives that the wall is there to take away. */
const syscalls: Readonly<Record<string, string>> = {
  add_key: 'keyrings are shared across namespaces',
  bpf: 'it loads programs into the kernel',
  clone: 'with every flag: it makes namespaces',
  chroot: 'it changes what paths mean, a step of many escapes',
  clone3: 'its flags cannot be filtered, so namespaces can be made',
  delete_module: 'it changes the kernel',
  fanotify_init: 'it watches whole file systems',
  finit_module: 'it loads code into the kernel',
  fsconfig: 'it mounts file systems',
  fsmount: 'it mounts file systems',
  fsopen: 'it mounts file systems',
  init_module: 'it loads code into the kernel',
  io_uring_enter: 'it does what other calls do, unseen by any filter',
  io_uring_register: 'it does what other calls do, unseen by any filter',
  io_uring_setup: 'it does what other calls do, unseen by any filter',
  ioctl: 'with every request: it types into terminals',
  kexec_file_load: 'it starts another kernel',
  kexec_load: 'it starts another kernel',
  keyctl: 'keyrings are shared across namespaces',
  mknod: 'it makes device nodes',
  mknodat: 'it makes device nodes',
  mount: 'it changes the tree that was planned',
  mount_setattr: 'it changes the tree that was planned',
  move_mount: 'it changes the tree that was planned',
  name_to_handle_at: 'with open_by_handle_at it walks past every mount',
  open_by_handle_at: 'it walks past every mount',
  open_tree: 'it changes the tree that was planned',
  perf_event_open: 'it observes the kernel and has a history of flaws',
  personality: 'it weakens the memory layout',
  pidfd_getfd: 'it takes descriptors out of other processes',
  pivot_root: 'it changes the tree that was planned',
  process_madvise: 'it acts on the memory of other processes',
  process_vm_readv: 'it reads the memory of other processes',
  process_vm_writev: 'it writes the memory of other processes',
  ptrace: 'it takes over other processes, PID 1 of the sandbox too',
  request_key: 'keyrings are shared across namespaces',
  setns: 'it enters other namespaces',
  socket: 'with every family: AF_VSOCK ignores network namespaces',
  umount2: 'it uncovers what was masked',
  unshare: 'it makes namespaces, and in a new user namespace every capability',
  userfaultfd: 'it holds the kernel at a chosen point, half of many exploits',
}

/** Every dangerous grant of one profile's own file. */
export function dangersOf(profile: Profile): readonly Danger[] {
  const { filesystem, environment, network } = profile
  return [
    ...filesystem.read.flatMap(({ path }, index) => pathDanger(path, ['filesystem', 'read', index])),
    ...filesystem.write.map(({ path }, index) => ({
      at: ['filesystem', 'write', index],
      got: `write access to ${path}`,
      why: `what others run or read from there later is the server’s${because(path)}`,
    })),
    ...(filesystem.mounts === 'write'
      ? [
          {
            at: ['filesystem', 'mounts'],
            got: 'write',
            why: 'what the host runs from a writable mount later runs unconfined',
          },
        ]
      : []),
    ...environment.pass.flatMap((entry, index) =>
      typeof entry === 'string'
        ? []
        : [overridden(entry.name, entry.override, ['environment', 'pass', index])],
    ),
    ...Object.entries(environment.set).flatMap(([name, entry]) =>
      typeof entry === 'string' ? [] : [overridden(name, entry.override, ['environment', 'set', name])],
    ),
    ...profile.syscalls.allow.flatMap((name, index) => {
      const why = own(syscalls, name)
      return why === undefined ? [] : [{ at: ['syscalls', 'allow', index], got: name, why }]
    }),
    ...credentialDangers(profile),
    ...network.allow.flatMap(({ host, private: isPrivate }, index) =>
      isPrivate
        ? [
            {
              at: ['network', 'allow', index],
              got: `${host} with private addresses`,
              why: 'it may lead into the host’s own network',
            },
          ]
        : [],
    ),
    ...network.allow.flatMap(({ host, address }, index) =>
      address === null
        ? []
        : [
            {
              at: ['network', 'allow', index, 'address'],
              got: `${host} at ${address}`,
              why: 'it stays there when its owner moves, and then it is somebody else’s',
            },
          ],
    ),
    ...network.allow.flatMap(({ host }, index) => {
      const shared = host.startsWith('*.') ? own(sharedSuffixes, host.slice(2)) : undefined
      const got = { at: ['network', 'allow', index, 'host'], got: host }
      return shared === undefined ? [] : [{ ...got, why: `anybody can have a name under it: ${shared}` }]
    }),
  ]
}

/** Ways of injection that bring the secret itself into the sandbox. */
function credentialDangers({ credentials, network }: Profile): readonly Danger[] {
  const leads = network.mode === 'allowlist' ? ', and there is a network to send it over' : ''
  const kinds = {
    env: `the server and every program that it starts can read the secret for the length of a call${leads}`,
    file: `the server and every program that it starts can read the secret for the length of a call${leads}`,
    meta: `the server reads the secret, and may keep it for as long as it lives${leads}`,
  }
  return credentials.flatMap((kind, index) =>
    kind === 'egress' ? [] : [{ at: ['credentials', index], got: kind, why: kinds[kind] }],
  )
}

function pathDanger(path: string, at: readonly Step[]): readonly Danger[] {
  const why = whyDangerous(path)
  return why === null ? [] : [{ at, got: path, why }]
}

/** A grant above a dangerous folder holds it; one inside it is as bad unless it is known to be harmless. */
function whyDangerous(path: string): string | null {
  if (path === '/') return 'it is the whole machine'
  if (sockets.test(path)) return 'whoever talks to that socket steers the machine'
  if (secrets.test(path)) return 'it holds keys or tokens'
  if (harmless.some((known) => liesWithin(path, known))) return null
  const found = places.find(([place]) => liesWithin(path, place) || liesWithin(place, path))
  if (found === undefined) return null
  const [place, why] = found
  if (place === '/home' && path.split('/').length > 3)
    return 'it lies in somebody’s home, and what is put there later is granted, too'
  return liesWithin(path, place) ? why : `${place} is in it: ${why}`
}

const because = (path: string): string => {
  const why = whyDangerous(path)
  return why === null ? '' : `; and ${why}`
}

const overridden = (name: string, override: string, at: readonly Step[]): Danger => ({
  at,
  got: name,
  why: `its family is refused, and an override lets it through: ${override}`,
})
