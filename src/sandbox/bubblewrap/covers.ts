// The covers over the host's facts in /proc: what is said of them to who makes them, and the proof that they are there.
import { SallyportError } from '../../errors.ts'
import type { Order, TargetReport } from '../control/control.ts'
import type { GateProof } from '../gate.ts'
import type { ProcMask } from './masks.ts'

/** What the launcher is told of them. */
export const coverOrders = (covers: readonly ProcMask[]): readonly Order[] =>
  covers.map(({ path, kind }): Order => ({ type: 'cover', path, isFolder: kind === 'directory' }))

/** By what a cover is known: it is this device, or lies on no file system of the kernel's. */
const device = '/dev/null'
const kernels = '/proc'

/**
 * What PID 1 is told of them, and what it must find: at each file the device, at each folder one that is not of /proc. Null where
 * there is none.
 */
export const coverProof = (server: string, covers: readonly ProcMask[]): GateProof | null =>
  covers.length === 0
    ? null
    : {
        orders: [{ type: 'covered' }],
        targets: [device, kernels, ...covers.map(({ path }) => path)],
        require([known, proc, ...found]) {
          for (const [index, { path, kind }] of covers.entries()) {
            const inside = found[index]
            const isThere = [inside, known, proc].every((report) => report?.errno === 0)
            const isCovered = kind === 'file' ? isSame(inside, known) : inside?.dev !== proc?.dev
            if (!isThere || !isCovered) throw uncovered(server, path)
          }
        },
      }

const isSame = (one: TargetReport | undefined, other: TargetReport | undefined): boolean =>
  one?.dev === other?.dev && one?.ino === other?.ino

const uncovered = (server: string, path: string): SallyportError =>
  new SallyportError(
    'ERR_SANDBOX_SETUP',
    `${path} is not covered in the sandbox of ${server}, and would tell of this machine; see whether sallyport-init is the one that was installed`,
    { step: 'gate', server, target: path },
  )
