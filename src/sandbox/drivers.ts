// Which drivers can make a sandbox here, for this user, and why another can't.
import { diagnose, type Diagnosis, onlyBubblewrap } from './fingerprint/diagnose.ts'
import { diagnoseEngine, withEngine } from './docker/diagnose.ts'
import { fingerprint } from './fingerprint/fingerprint.ts'
import type { ServerSettings } from '../schema/settings.ts'

export type DriverName = ServerSettings['driver']

export interface DriverHere {
  readonly driver: DriverName
  /** Why it makes no sandbox here, for this user, and what mends that; null where it does */
  readonly why: string | null
}

/** Everything that is to be said of this machine and of its engine. */
export const examineHost = async (
  environment: Readonly<Record<string, string | undefined>>,
): Promise<readonly Diagnosis[]> => {
  const found = await fingerprint()
  return withEngine(diagnose(found), await diagnoseEngine(environment, found.init.path))
}

/** Every driver once. Pure. */
export const driversIn = (rows: readonly Diagnosis[]): readonly DriverHere[] => {
  const firstBad = (needed: (control: Diagnosis['control']) => boolean): string | null => {
    const bad = rows.find(({ control, ok }) => !ok && needed(control))
    if (bad === undefined) return null
    const mend = bad.mend === null ? '' : `; ${bad.mend}`
    return `${bad.control}: ${bad.cause ?? 'unknown'}${mend}`
  }
  const ofBoth = firstBad((control) => control === 'init' || control === 'system calls')
  const hasContainers = rows.some(({ control }) => control === 'containers')
  return [
    { driver: 'bubblewrap', why: ofBoth ?? firstBad((control) => onlyBubblewrap.has(control)) },
    {
      driver: 'docker',
      why:
        ofBoth ??
        firstBad((control) => control === 'container engine' || control === 'containers') ??
        (hasContainers ? null : 'no container engine is named or installed'),
    },
  ]
}
