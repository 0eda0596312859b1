// Probe 152: a way out and the profile that says whether there is one agree, whoever composed them. Nothing of it is started.
import { finds } from '../attempt.ts'
import { networkUnknown, neverTried } from '../gvisor/inapplicable.ts'
import type { Lab } from '../lab/lab.ts'
import { refusesPlans, type Wanted } from '../lab/planned.ts'
import type { Rule } from '../lab/rules.ts'
import type { Probe, Scene } from '../probe.ts'

const asStated: Rule = 'a way out where the profile has one'

/** A launch whose profile says this of the network, and which has a door where it says otherwise. */
const disagreeing = (what: string, mode: Lab['profile']['network']['mode']): Wanted => ({
  what,
  of(lab) {
    const hasDoor = (mode === 'allowlist') !== lab.disagrees
    const { profile, doors } = lab
    return {
      ...lab,
      profile: { ...profile, network: { ...profile.network, mode } },
      openDoor: hasDoor ? doors.own : null,
    }
  },
})

const expected = 'each refused'

const wanted = ({ canConnect }: Scene): readonly Wanted[] => [
  disagreeing('a way out beside a profile that has none', 'none'),
  ...(canConnect === true ? [disagreeing('none beside a profile that has one', 'allowlist')] : []),
]

export const modeProbes: readonly Probe[] = [
  {
    id: 'network.as-stated',
    number: 152,
    group: 'network',
    protects:
      'A server has a way out where its profile says so, and nowhere else, whatever it was launched with.',
    control: 'network-mode',
    isAlone: true,
    trial: (scene) =>
      scene.canConnect === 'unknown'
        ? neverTried(expected, networkUnknown)
        : {
            expected,
            attempts: wanted(scene).map((one) => refusesPlans(one.what, [one], asStated)),
            outside: [
              finds(
                ['exchange', '127.0.0.1', `${scene.wayOut.grant.port}`, 'GET / HTTP/1.1\\r\\n\\r\\n'],
                (text) => (text.includes(scene.wayOut.greeting) ? 'the server answers' : null),
                'the server, without a door',
              ),
            ],
          },
  },
]
