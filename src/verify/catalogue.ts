// Every probe there is, by its number. A number that is not here is not probed, and in no output.
import { addressProbes } from './battery/addresses.ts'
import { argumentProbes } from './battery/arguments.ts'
import { budgetProbes } from './battery/budgets.ts'
import { callProbes } from './battery/calls.ts'
import { containerProbes } from './battery/container.ts'
import { deniedProbes } from './battery/denied.ts'
import { deviceProbes } from './battery/devices.ts'
import { egressProbes } from './battery/egress.ts'
import { fileProbes } from './battery/files.ts'
import { foreignCallProbes } from './battery/foreign-calls.ts'
import { gateProbes } from './battery/gate.ts'
import { givenProbes } from './battery/given.ts'
import { judgedProbes } from './battery/judged.ts'
import { mountProbes } from './battery/mounts.ts'
import { patternProbes } from './battery/patterns.ts'
import { placedProbes } from './battery/placed.ts'
import { privilegeProbes } from './battery/privileges.ts'
import { procProbes } from './battery/proc.ts'
import { reachProbes } from './battery/reach.ts'
import { relayProbes } from './battery/relay.ts'
import { resourceProbes } from './battery/resources.ts'
import { secretProbes } from './battery/secrets.ts'
import { shutProbes } from './battery/shut.ts'
import { modeProbes } from './battery/mode.ts'
import { socketProbes } from './battery/sockets.ts'
import { spokenProbes } from './battery/spoken.ts'
import { startProbes } from './battery/start.ts'
import type { Probe } from './probe.ts'
import { toldProbes } from './battery/told.ts'
import { variableProbes } from './battery/variables.ts'

export const catalogue: readonly Probe[] = [
  ...fileProbes,
  ...mountProbes,
  ...procProbes,
  ...privilegeProbes,
  ...deviceProbes,
  ...callProbes,
  ...foreignCallProbes,
  ...argumentProbes,
  ...socketProbes,
  ...reachProbes,
  ...givenProbes,
  ...egressProbes,
  ...relayProbes,
  ...resourceProbes,
  ...startProbes,
  ...gateProbes,
  ...judgedProbes,
  ...deniedProbes,
  ...placedProbes,
  ...spokenProbes,
  ...addressProbes,
  ...patternProbes,
  ...budgetProbes,
  ...variableProbes,
  ...containerProbes,
  ...secretProbes,
  ...toldProbes,
  ...shutProbes,
  ...modeProbes,
].toSorted((one, other) => one.number - other.number)
