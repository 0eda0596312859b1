// Probes 142 to 144: launches that ask for mounts where none may be, and for the right to write to what is run. Nothing is started.
import { appendFileSync, chmodSync, copyFileSync, existsSync, mkdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { newInstanceId } from '../../lib/ids.ts'
import { stops } from '../attempt.ts'
import { givenTarget } from '../arms/gate-controls.ts'
import type { Lab } from '../lab/lab.ts'
import { projectNames } from '../lab/names.ts'
import { peoplesPlaces } from '../lab/people.ts'
import { mountsOfPlan, refusesPlans, type Wanted } from '../lab/planned.ts'
import type { Probe, Scene } from '../probe.ts'
import { mounting, running } from '../arms/wanted.ts'

/** What every sandbox has of its own. */
const ownPlaces =
  '/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /proc /sys /dev /boot /run /sallyport'.split(' ')

const at = (...targets: readonly string[]): Wanted => ({
  what: targets.join(' and '),
  of: (lab) =>
    targets.reduce(
      (wanted, target) => mounting(({ workspace }) => ({ source: workspace, target }))(wanted),
      lab,
    ),
})

const beyond = (ceiling: 'none' | 'read', access: 'read' | 'write'): Wanted => ({
  what: `${access} where ${ceiling} is most`,
  of: (lab) => {
    const asking = mounting(({ workspace }) => ({ source: workspace, access }))(lab)
    const { filesystem } = asking.profile
    return { ...asking, profile: { ...asking.profile, filesystem: { ...filesystem, mounts: ceiling } } }
  },
})

const codeAt = (target: string): Wanted => ({
  what: `code at ${target}`,
  of: (lab) => packaged(lab, { target }),
})

/** The folder of the probes' program, which nobody but a trusted user can write to: what may be code. */
const codeFolder = ({ probes }: Pick<Lab, 'probes'>): string => dirname(realpathSync(probes))

const packaged = (lab: Lab, { target = '/opt/verify', source = codeFolder(lab) } = {}): Lab => ({
  ...lab,
  server: { ...lab.server, image: null, package: { source, target, with: [], digest: null } },
})

/** The launch of a shell with a script below a folder of the sandbox. */
const scripted = (lab: Lab, folder: string): Lab =>
  running(lab, { interpreter: 'shell', args: [join(folder, '.git', 'config')] })

/** A server whose program, or a file of whose package, is another at its second launch. */
const changed = (what: string, of: (lab: Lab, folder: string) => Lab): Wanted => {
  const made = { file: '' }
  return {
    what,
    of: (lab) => {
      const folder = join(dirname(lab.program), `registered-${newInstanceId()}`)
      made.file = join(folder, 'program')
      mkdirSync(folder)
      copyFileSync(lab.program, made.file)
      for (const path of [folder, made.file]) chmodSync(path, 0o755)
      return of(lab, folder)
    },
    changing: () => {
      appendFileSync(made.file, 'another')
    },
  }
}

const writing =
  (source: (lab: Lab) => string) =>
  (lab: Lab): Lab =>
    mounting(() => ({ source: source(lab), access: 'write' }))(lab)

const reading =
  (path: (lab: Lab) => string) =>
  (lab: Lab): Lab => {
    const { filesystem } = lab.profile
    const read = [...filesystem.read, { path: path(lab), reason: 'a verification' }]
    return { ...lab, profile: { ...lab.profile, filesystem: { ...filesystem, read } } }
  }

/** Parts of the code, and what holds it. */
const sharing: readonly (readonly [what: string, of: (lab: Lab) => string])[] = [
  ['its folder', codeFolder],
  ['the folder above', (lab) => dirname(codeFolder(lab))],
  ['a file of it', ({ probes }) => realpathSync(probes)],
]

const ofProject = ({ people }: Pick<Lab['trees'], 'people'>, ...names: readonly string[]): string =>
  join(people, peoplesPlaces.project, ...names)

const writesTo = (what: string, source: (trees: Lab['trees']) => string): Wanted => ({
  what,
  of: mounting((trees) => ({ source: source(trees), access: 'write' })),
})

const outside = ({ canaries }: Scene) => [
  stops(['open-for-writing', ofProject(canaries, '.envrc')], [], 'a file that the host runs'),
]

export const placedProbes: readonly Probe[] = [
  {
    id: 'files.targets',
    number: 142,
    group: 'files',
    protects: 'Nothing of a server’s covers what its sandbox is made of, or what is mounted already.',
    control: 'mount-targets',
    isAlone: true,
    trial: (scene) => ({
      expected: 'each refused',
      attempts: [
        refusesPlans(
          'at what is the sandbox’s own, inside it and above',
          [
            ...ownPlaces.flatMap((path) => [path, join(path, 'verify')]),
            '/',
            '/tmp',
            '/home',
            '/home/user',
          ].map((target) => at(target)),
          'targets of the sandbox’s own',
        ),
        refusesPlans(
          'code there',
          ownPlaces.map((path) => codeAt(join(path, 'verify'))),
          'targets of the sandbox’s own',
        ),
        refusesPlans(
          'over another mount, inside it and above',
          [
            at(givenTarget, givenTarget),
            at(givenTarget, join(givenTarget, 'x')),
            at(join(givenTarget, 'x'), givenTarget),
          ],
          'targets apart from each other',
        ),
        refusesPlans(
          'more than the profile lets a server mount',
          [beyond('none', 'read'), beyond('none', 'write'), beyond('read', 'write')],
          'no more than the profile’s mounts',
        ),
        refusesPlans(
          'a working directory that is nowhere',
          ['/', '/etc', '/tmp/../etc'].map((cwd) => ({
            what: cwd,
            of: (lab) => ({ ...lab, server: { ...lab.server, cwd } }),
          })),
          'a working directory of the sandbox',
        ),
        refusesPlans(
          'by another name of it',
          ['/verify/../etc', '/verify/./x', '//etc', '/etc/', 'etc', '/verify\u0001'].map((target) =>
            at(target),
          ),
          'paths spelled in one way',
        ),
      ],
      outside: outside(scene),
    }),
  },
  {
    id: 'files.code',
    number: 143,
    group: 'files',
    protects:
      'A server cannot write to what it is started from, and so is what was registered at its next start too.',
    control: 'code-apart',
    isAlone: true,
    trial: (scene) => ({
      expected: 'each refused',
      attempts: [
        refusesPlans(
          'a writable mount of a program',
          sharing.map(([what, of]) => ({ what, of: (lab) => writing(of)(running(lab)) })),
          'code apart from writable mounts',
        ),
        refusesPlans(
          'a program in what the profile reads',
          sharing
            .slice(0, 1)
            .map(([what, of]) => ({ what, of: (lab) => writing(of)(reading(codeFolder)(running(lab))) })),
          'code apart from writable mounts',
        ),
        refusesPlans(
          'a writable mount of a package',
          sharing.map(([what, of]) => ({ what, of: (lab) => writing(of)(packaged(lab)) })),
          'code apart from writable mounts',
        ),
        refusesPlans(
          'a script in a writable mount',
          [
            {
              what: 'a shell’s',
              of: (lab) => writing(({ trees }) => trees.workspace)(scripted(lab, givenTarget)),
            },
          ],
          'a script in a read-only mount',
        ),
        refusesPlans(
          'a script that is nowhere',
          [{ what: 'a shell’s', of: (lab) => scripted(lab, '/tmp') }],
          'a script in a mount',
        ),
        refusesPlans(
          'code that anybody may write to',
          [
            { what: 'a program', of: (lab) => running(lab, { path: ofProject(lab.trees, '.envrc') }) },
            { what: 'a package', of: (lab) => packaged(lab, { source: ofProject(lab.trees) }) },
            { what: 'a file of a package', of: (lab) => packaged(lab, { source: lab.trees.people }) },
          ],
          'code that is its owner’s to write',
        ),
        refusesPlans(
          'code that changed since it was registered',
          [
            changed('a program', (lab, folder) => running(lab, { path: join(folder, 'program') })),
            changed('a package', (lab, source) => packaged(running(lab), { source })),
          ],
          'code as it was registered',
        ),
        refusesPlans(
          'a command that nobody allowed',
          [
            {
              what: 'a stranger',
              of: (lab) => ({ ...lab, server: { ...lab.server, command: 'verify-stranger', image: null } }),
            },
          ],
          'commands that are allowed',
        ),
        refusesPlans(
          'a command that is a path',
          ['/bin/sh', '../sh'].map((name) => ({ what: name, of: (lab) => running(lab, { name }) })),
          'commands by a bare name',
        ),
        ...(existsSync('/etc/ld.so.cache')
          ? [
              refusesPlans(
                'a writable mount of what programs are loaded by',
                [{ what: 'ld.so.cache', of: (lab) => writing(() => '/etc/ld.so.cache')(running(lab)) }],
                'code apart from writable mounts',
              ),
            ]
          : []),
      ],
      outside: outside(scene),
    }),
  },
  {
    id: 'files.protected-names',
    number: 144,
    group: 'files',
    protects:
      'Whatever tool of the host reads a project, a server that may write to it changes none of its files.',
    control: 'protected-names',
    isAlone: true,
    trial: (scene) => ({
      expected: 'each mounted read-only, or the launch refused',
      attempts: [
        mountsOfPlan(
          'a project with each of the names',
          writesTo('', (trees) => ofProject(trees)).of,
          (mounts) => {
            const open = projectNames.filter((name) => mounts.get(join(givenTarget, name)) !== 'read')
            return open.length === 0 ? null : `not read-only: ${open.slice(0, 5).join(' ')}`
          },
        ),
        refusesPlans(
          'a writable mount of one of them',
          ['.git', '.github', '.vscode', '.claude'].map((name) =>
            writesTo(name, (trees) => ofProject(trees, name)),
          ),
          'what the host runs is not written',
        ),
        refusesPlans(
          'a link in the place of .git',
          [writesTo('a project', ({ people }) => join(people, peoplesPlaces.linked))],
          'no link for a version-control folder',
        ),
        refusesPlans(
          'more names than are held',
          [writesTo('three projects', ({ people }) => join(people, peoplesPlaces.projects))],
          'protected files that are few',
        ),
      ],
      outside: outside(scene),
    }),
  },
]
