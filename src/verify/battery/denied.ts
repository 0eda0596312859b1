// Probes 140 and 141: launches that ask for what no server may have, by each name and each way. Nothing of them is started.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { findDenials } from '../../sandbox/mounts/denials.ts'
import { stops } from '../attempt.ts'
import type { Lab } from '../lab/lab.ts'
import { homeNames, machineNames, socketNames } from '../lab/names.ts'
import { linkedName, peoplesPlaces } from '../lab/people.ts'
import { lacks, refusesPlans, type Wanted } from '../lab/planned.ts'
import type { Probe, Scene } from '../probe.ts'
import type { Rule } from '../lab/rules.ts'
import { knowing, mounting } from '../arms/wanted.ts'

type Place = keyof typeof peoplesPlaces
type Trees = Lab['trees']

const denied: Rule = 'what is denied to everybody'

const place = ({ people }: Pick<Trees, 'people'>, name: Place, ...below: readonly string[]): string =>
  join(people, peoplesPlaces[name], ...below)

const mounts = (
  what: string,
  source: (trees: Trees) => string,
  access: 'read' | 'write' = 'read',
): Wanted => ({
  what,
  of: mounting((trees) => ({ source: source(trees), access })),
})

/** Asked of a daemon whose home is one of the planted. */
const ofDaemonAt = (home: Place, { what, of }: Wanted): Wanted => ({
  what,
  of: (lab) => of(knowing({ homes: [place(lab.trees, home)] })(lab)),
})

const ofPeople = (name: Place, ...below: readonly string[]): Wanted =>
  ofDaemonAt(
    'home',
    mounts(join(peoplesPlaces[name], ...below), (trees) => place(trees, name, ...below)),
  )

const machine = (): readonly Wanted[] =>
  machineNames
    .filter((path) => existsSync(path))
    .map((path) => ({ ...mounts(path, () => path), isGone: () => !existsSync(path) }))

/** What is denied to whoever mounts nothing of the machine's, whether or not it is there. */
const notDenied = ({ host, trees }: Lab): readonly string[] => {
  const homes = [place(trees, 'home')]
  const found = new Set(findDenials({ ...host.facts, homes }, []).map(({ path }) => path))
  const names = [...machineNames, ...homeNames.map((name) => place(trees, 'home', name))]
  return names.filter((name) => !found.has(name))
}

/** Of a daemon that has no home: what is refused is refused for what the machine says of its people. */
const homeOfOther = (home: string): Wanted => ({
  what: home,
  of: (lab) => mounting(() => ({ source: home, access: 'write' }))(knowing({ homes: [], own: [] })(lab)),
  isGone: () => !homesOfPeople().includes(home),
})

/** The homes of people, as the machine names them to everybody: root's, and those of whoever may log in. */
const homesOfPeople = (): readonly string[] => {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  return lines.flatMap((line) => {
    const [, , id, , , home = ''] = line.split(':')
    const isPerson = id === '0' || (Number(id) >= 1000 && Number(id) < 60_000)
    const isHome = home.startsWith('/') && resolve(home) !== '/' && isFolder(home)
    return isPerson && isHome ? [resolve(home)] : []
  })
}

/** Whether a folder is there, and may be looked at. */
const isFolder = (path: string): boolean =>
  existsSync(path) && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

const homesOfOthers = (): readonly (readonly Wanted[])[] => {
  const homes = homesOfPeople()
  return homes.length === 0 ? [] : [homes.slice(0, 8).map(homeOfOther)]
}

/** Forms in which variables name sockets. */
const forms: Readonly<Record<string, (path: string) => string>> = {
  DOCKER_HOST: (path) => `unix://${path}`,
  DBUS_SESSION_BUS_ADDRESS: (path) => `unix:path=${path},guid=0`,
  GPG_AGENT_INFO: (path) => `${path}:1:1`,
}

const folderOfSocket = (variable: string): Wanted => ({
  what: variable,
  of: (lab) => {
    const { socket } = lab.trees
    const environment = { [variable]: (forms[variable] ?? String)(socket) }
    return mounting(() => ({ source: dirname(socket) }))(knowing({ environment })(lab))
  },
})

const outside = ({ canaries }: Scene) => [
  stops(['read', place(canaries, 'home', '.ssh', 'key')], [], 'a key in a home'),
]

export const deniedProbes: readonly Probe[] = [
  {
    id: 'files.denied-names',
    number: 140,
    group: 'files',
    protects: 'The system’s own files and people’s keys, tokens and histories are each mounted for none.',
    control: 'denials',
    isAlone: true,
    trial: (scene) => ({
      expected: 'each is denied by name, and a launch that asks for it refused',
      attempts: [
        lacks('names that are denied', notDenied),
        refusesPlans('what runs the machine, and what its administration keeps', machine(), denied),
        refusesPlans(
          'what people keep at home',
          homeNames.map((name) => ofPeople('home', name)),
          denied,
        ),
      ],
      outside: outside(scene),
    }),
  },
  {
    id: 'files.denied-ways',
    number: 141,
    group: 'files',
    protects: 'There is no way around a denial: from above, from inside, through a link, by a socket.',
    control: 'denials',
    isAlone: true,
    trial: (scene) => ({
      expected: 'each refused',
      attempts: [
        refusesPlans('a folder above', [ofPeople('home'), ofPeople('home', '.config')], denied),
        refusesPlans(
          'the whole machine',
          ['/', '/etc', '/var'].map((path) => mounts(path, () => path)),
          denied,
        ),
        refusesPlans('something inside', [ofPeople('home', '.ssh', 'key')], denied),
        refusesPlans('a link that leads there', [ofPeople('alias')], denied),
        refusesPlans(
          'what a denied name is a link to',
          [ofPeople('home', linkedName), ofPeople('elsewhere'), ofPeople('elsewhere', 'key')],
          denied,
        ),
        refusesPlans(
          'a home behind a link',
          [
            ofDaemonAt(
              'moved',
              mounts('.ssh', (trees) => place(trees, 'home', '.ssh')),
            ),
          ],
          denied,
        ),
        refusesPlans(
          'a folder in which it could be made',
          [
            ofDaemonAt(
              'newcomer',
              mounts('an empty home', (trees) => place(trees, 'newcomer'), 'write'),
            ),
          ],
          denied,
        ),
        ...homesOfOthers().map((homes) => refusesPlans('homes of the people of this machine', homes, denied)),
        refusesPlans('the folder of an agent’s or engine’s socket', socketNames.map(folderOfSocket), denied),
        refusesPlans(
          'a socket, a device',
          [mounts('a socket', ({ socket }) => socket), mounts('a device', () => '/dev/null')],
          'only files and folders are mounted',
        ),
      ],
      outside: outside(scene),
    }),
  },
]
