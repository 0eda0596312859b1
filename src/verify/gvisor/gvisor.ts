// The battery as it is tried in gVisor, whose kernel answers in the place of this one.
import { differences, type Difference, holdsAnyhow } from './differences.ts'
import { inapplicable } from './inapplicable.ts'
import type { Planned } from '../lab/inside.ts'
import type { Scene } from '../probe.ts'

/** The probe as it is tried in gVisor. Outside stands what stood there. */
export const inGvisor = ({ probe, trial }: Planned, scene: Scene): Planned => {
  const anyhow = holdsAnyhow.get(probe.id)
  const difference: Difference | undefined =
    anyhow === undefined ? differences[probe.id] : { because: anyhow, isHeldBeside: true }
  if (difference === undefined || trial.inapplicable !== undefined) return { probe, trial }
  const { because, expected = trial.expected, by, isHeldBeside } = difference
  const attempts = difference.attempts === undefined ? trial.attempts : difference.attempts(trial, scene)
  const note = [trial.note, `in gVisor: ${because}`].filter((it) => it !== undefined).join('; ')
  if (attempts === null)
    return { probe, trial: inapplicable(expected, note, 'where the host’s own kernel answers') }
  return {
    probe: { ...probe, ...difference.probe },
    trial: {
      ...trial,
      expected,
      attempts,
      outside: trial.outside ?? trial.attempts,
      note,
      ...(by !== undefined && { layer: by }),
      ...(isHeldBeside && { isHeldBeside }),
    },
  }
}
