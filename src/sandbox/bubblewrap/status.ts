// What bubblewrap tells on its status descriptor: which process of the host is the sandbox's PID 1.
import type { Readable } from 'node:stream'
import { SallyportError } from '../../errors.ts'

const maxStatusBytes = 65_536

/** Returns the pid, as the host counts, of the sandbox's PID 1. Throws ERR_SANDBOX_SETUP when the stream ends without it. */
export const readInitPid = (status: Readable): Promise<number> =>
  new Promise((resolve, reject) => {
    let text = ''
    const take = (chunk: Buffer): void => {
      text += chunk.toString()
      const pid = childPid(text)
      if (pid !== null) settle(() => resolve(pid))
      else if (text.length > maxStatusBytes) fail()
    }
    const fail = (): void =>
      settle(() =>
        reject(
          new SallyportError(
            'ERR_SANDBOX_SETUP',
            `bubblewrap did not name its child, but said ${JSON.stringify(text.slice(0, 200))}`,
            {
              step: 'confine',
            },
          ),
        ),
      )
    const settle = (result: () => void): void => {
      status.off('data', take).off('close', fail)
      // What bubblewrap says later is its child's end, which init says better; unread, it would block nobody.
      status.resume()
      result()
    }
    status.on('data', take).once('close', fail)
  })

const childPid = (text: string): number | null => {
  const match = /"child-pid"\s*:\s*(\d+)\s*[,}]/.exec(text)
  return match === null ? null : Number(match[1])
}
