// What becomes of a process that starts a program, or limits one, when it has no descriptor to spare.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const script = fileURLToPath(new URL('../fixtures/no-descriptors.ts', import.meta.url))

/** Returns how it said that failed. Throws where it ended over it; in a session of its own, since it could take its group along. */
export async function withoutDescriptors(
  what: 'peer' | 'secret' | 'ssh' | 'group' | 'lock' | 'guard' | 'janitor' | 'dial' | 'trial' | 'tool',
  program = '',
): Promise<string> {
  const limited = ['--wait', 'prlimit', '--nofile=64:64', process.execPath, script, what, program]
  const { stdout } = await promisify(execFile)('setsid', limited)
  return stdout
}
