// The controls of what a server has in its environment.
import type { Control } from './control.ts'
import type { Lab } from '../lab/lab.ts'
import { withVariables } from '../lab/removal.ts'
import { familyNames } from '../lab/variable-families.ts'

const withReasons = (lab: Lab): Lab => {
  const reasons = Object.fromEntries(familyNames.map((name) => [name, 'a verification']))
  const { server, profile } = lab
  return {
    ...lab,
    server: { ...server, envOverride: { ...server.envOverride, ...reasons } },
    profile: {
      ...profile,
      environment: { ...profile.environment, override: { ...profile.environment.override, ...reasons } },
    },
  }
}

export const environmentControls = {
  environment: {
    what: 'an environment that is built from empty',
    layer: 'supervisor',
    arm: { without: withVariables },
  },
  variables: {
    what: 'families of variables that nobody is given without a written reason',
    layer: 'supervisor',
    // The operator's word for each of them.
    arm: { around: withReasons },
  },
} as const satisfies Readonly<Record<string, Control>>
