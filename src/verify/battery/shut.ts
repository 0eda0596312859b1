// Probe 151: nothing goes out once the doors were shut, be it granted, looked up or connected.
import { finds, seen, stopsOrFinds, type Attempt } from '../attempt.ts'
import { doorsShut } from '../lab/behind.ts'
import { withoutNetworkThereIs } from '../gvisor/inapplicable.ts'
import type { Probe, Scene } from '../probe.ts'
import { atDoor, doorOf, hearsOf } from './asking.ts'

const atDoors = ({ wayOut }: Scene): readonly Attempt[] => {
  const { grant, behind, greeting } = wayOut
  const { shut, closing, ending } = behind
  const refused = ({ host, port }: typeof grant, when: string): Attempt =>
    stopsOrFinds(
      atDoor(host, port),
      ['ECONNRESET', 'EPIPE'],
      (text) => (text.includes(greeting) ? 'the server answers' : null),
      `a granted host, for which they were shut ${when}`,
    )
  const hosts = [shut, closing, ending].map(({ host }) => host)
  return [
    finds(
      atDoor(grant.host, grant.port),
      (text) => (text.includes(greeting) ? null : `no answer: ${text.slice(0, 60)}`),
      'a granted host, for which they stand open',
    ),
    refused(shut, 'before it was asked for'),
    refused(closing, 'before it was dialled'),
    refused(ending, 'once it was connected'),
    seen(
      'names that were looked up while they were shut',
      (program) =>
        Promise.resolve(wayOut.heardAt(doorOf(program)).lookedUp.includes(shut.host) ? shut.host : ''),
      (text) => (text === '' ? null : text),
    ),
    hearsOf('why they were ended', wayOut, () => hosts.map((host) => `${doorsShut} ${host}`)),
    seen(
      'what goes on of a connection whose door is closed',
      () => wayOut.outliving(),
      (text) => (text === '' ? null : text),
    ),
  ]
}

export const shutProbes: readonly Probe[] = [
  {
    id: 'network.doors-shut',
    number: 151,
    group: 'network',
    protects:
      'Once its doors are shut, a server reaches nobody: what was granted is not looked up, not dialled, and cut.',
    control: 'doors',
    isAlone: true,
    within: (lab) => ({ ...lab, openDoor: lab.doors.shutting }),
    trial: (scene) =>
      scene.spec.network.mode === 'none'
        ? withoutNetworkThereIs('no door to be shut', 'there is no door')
        : {
            expected: 'an answer where they stand open, and none where they are shut',
            attempts: atDoors(scene),
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
