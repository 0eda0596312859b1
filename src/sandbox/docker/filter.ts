// The filter that the engine loads before init runs: the names that the policy ever allows, and what init itself takes first.
import type { Network, SyscallPolicy } from '../spec.ts'
import { decideSyscalls } from '../syscalls.ts'

/** What init does before it installs the exact filter, by which these are refused again. */
const initNeeds = ['unshare', 'prctl', 'seccomp', 'ioctl', 'socket', 'connect']

/**
 * Returns the engine's filter as it takes it, JSON.
 *
 * It knows names only, not arguments: rules of ours are tried in order, and the engine's are not. The compiled filter, which
 * judges every argument, is installed by init before it takes any order of the server's; both hold from then on, so that
 * this one is what stands while init is at work, and the second lock of every call that has no business here at all.
 */
export const engineFilter = (policy: SyscallPolicy, network: Network['mode']): string => {
  const verdicts = [...decideSyscalls(policy, network).values()]
  const allowed = verdicts.filter(({ rules }) => rules.some(({ action }) => action === 'allow'))
  const names = [...new Set([...allowed.map(({ name }) => name), ...initNeeds])].toSorted()
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ERRNO',
    archMap: [
      { architecture: 'SCMP_ARCH_X86_64', subArchitectures: [] },
      { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: [] },
    ],
    syscalls: [{ names, action: 'SCMP_ACT_ALLOW' }],
  })
}
