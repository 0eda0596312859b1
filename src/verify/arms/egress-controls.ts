// The controls of the proxy outside: each is one of its judgements, and without it a door that does not make that one.
import type { Control } from './control.ts'
import type { Lab } from '../lab/lab.ts'
import { connected, withoutNetwork } from '../lab/removal.ts'
import type { LabDoors } from '../lab/way-out.ts'

const withDoor =
  (which: keyof LabDoors) =>
  (lab: Lab): Lab => ({ ...lab, openDoor: lab.openDoor === null ? null : lab.doors[which] })

/** Where a profile has no network, that nobody is there is all there is to it: without it somebody is. */
const withAnyDoor =
  (which: keyof LabDoors) =>
  (lab: Lab): Lab => ({ ...connected(lab), openDoor: lab.doors[which] })

export const egressControls = {
  proxy: {
    what: 'a proxy outside that judges each connection by name and port',
    layer: 'proxy',
    arm: {
      without: (plan, exposure) => (plan.spec.network.mode === 'none' ? withoutNetwork(plan, exposure) : {}),
      around: withDoor('forAll'),
    },
  },
  patterns: {
    what: 'patterns of names: below a name of two labels at least, never the name itself, nor what only ends alike',
    layer: 'proxy',
    arm: {
      around: (lab) => ({ ...withDoor('beside')(lab), broad: { ...lab.broad, pattern: '*.sallyport.test' } }),
    },
  },
  addresses: {
    what: 'a proxy that dials no address of this machine, its networks or its cloud, whatever name leads there',
    layer: 'proxy',
    arm: { around: withAnyDoor('inward') },
  },
  'spoken-names': {
    what: 'a proxy that hears for whom the first words of a connection are',
    layer: 'proxy',
    arm: { around: withAnyDoor('unheard') },
  },
  budgets: {
    what: 'connections at once, and bytes, silence and life of each',
    layer: 'proxy',
    arm: { around: (lab) => ({ ...lab, doors: { ...lab.doors, scant: lab.doors.generous } }) },
  },
  placeholders: {
    what: 'a proxy that lets nothing pass which stands for a credential, nor a credential, but where its entry says',
    layer: 'proxy',
    arm: { around: (lab) => ({ ...lab, doors: { ...lab.doors, screened: lab.doors.own } }) },
  },
  told: {
    what: 'a word to the supervisor of whatever is refused inside and at the proxy',
    layer: 'proxy',
    arm: { around: (lab) => ({ ...lab, doors: { ...lab.doors, heard: lab.doors.unheardOf } }) },
  },
  doors: {
    what: 'doors that the supervisor shuts: a proxy that asks before each connection, and cuts what is open',
    layer: 'proxy',
    arm: { around: (lab) => ({ ...lab, doors: { ...lab.doors, shutting: lab.doors.own } }) },
  },
  'network-mode': {
    what: 'launches that have a way out exactly where their profile has one',
    layer: 'supervisor',
    arm: { around: (lab) => ({ ...lab, disagrees: false }) },
  },
} as const satisfies Readonly<Record<string, Control>>
