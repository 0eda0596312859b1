// What runs of chaos found, and the tests that hold it since: a seed that fails becomes a test. docs/faults.md is made from this.

/** One finding, and where it would be seen again without any chance. */
export interface Finding {
  readonly as: 'root' | 'an ordinary user' | 'either'
  /** Null where the run that found it was not written down */
  readonly seed: number | null
  readonly found: string
  /** File below test/ -> what titles of its tests hold */
  readonly tests: Readonly<Record<string, readonly string[]>>
}

export const findings: readonly Finding[] = [
  {
    as: 'root',
    seed: 7,
    found: 'launches that ran out of descriptors left five sockets each, for as long as the daemon lived',
    tests: {
      'daemon/descriptors.test.ts': ['a child that can’t be started leaves no descriptor'],
      'integration/at-rest.test.ts': ['23: a launch that runs out of descriptors'],
    },
  },
  {
    as: 'root',
    seed: 105,
    found: 'a daemon ended by SIGSEGV, since what Node had left open of a start that failed was closed',
    tests: { 'daemon/descriptors.test.ts': ['a start that lacks descriptors fails before it has any pipe'] },
  },
  {
    as: 'root',
    seed: 11,
    found: 'a container’s folder that could not be taken down ended the daemon',
    tests: { 'docker/faults.test.ts': ['held a server whose folder can’t be taken down'] },
  },
  {
    as: 'an ordinary user',
    seed: 302,
    found: 'a server was given up, since a module was loaded when descriptors had run out',
    tests: { 'lib/missing.test.ts': ['a module that there is no descriptor to load with is a shortage'] },
  },
  {
    as: 'an ordinary user',
    seed: 5150,
    found: 'the doors of a daemon that was killed with its guard stayed',
    tests: { 'daemon/outside.test.ts': ['a daemon takes away the doors of one before it'] },
  },
  {
    as: 'an ordinary user',
    seed: 506,
    found: 'a snapshot that the disk had no room for left what there was of it',
    tests: { 'journal/snapshot.test.ts': ['one that can’t be written leaves no draft'] },
  },
  {
    as: 'root',
    seed: 2004,
    found:
      'no container could be made any more, once what that needs was loaded while descriptors had run out',
    tests: { 'docker/late-engine.test.ts': ['is loaded once there are some'] },
  },
  {
    as: 'an ordinary user',
    seed: 7,
    found: 'a call that had waited, and was refused while the disk was full, had an intent and no end',
    tests: { 'call/govern.test.ts': ['once its intent is on record, and %s cannot be: its end is owed'] },
  },
  {
    as: 'an ordinary user',
    seed: 817,
    found:
      'a server was given up for starts that a limit on the size of files, as its disk was full by, had ended',
    tests: {
      'sandbox/bubblewrap/driver.test.ts': ['a launch that finds no room below the limit on a file’s size'],
    },
  },
  {
    as: 'an ordinary user',
    seed: 819,
    found:
      'what makes certificates, loaded while the limit on descriptors was lowered, failed for as long as the daemon lived',
    tests: { 'lib/late.test.ts': ['descriptors ran out for in the midst of its packages'] },
  },
  {
    as: 'root',
    seed: 7,
    found:
      'the process that reads the configuration, stopped when its daemon was killed, stayed with the credentials of its environment',
    tests: {
      'integration/reload-reading.test.ts': ['a process that reads and stands still ends with its daemon'],
    },
  },
  {
    as: 'root',
    seed: 3005,
    found:
      'a daemon that stood still, and whose guard was killed, went on writing to the journal that another one had begun to write',
    tests: {
      'daemon/guard.test.ts': [
        'nobody else gets the lock of a daemon that stands still, and whose guard was killed',
      ],
    },
  },
  {
    as: 'an ordinary user',
    seed: null,
    found:
      'bubblewrap that was killed as it started left a child that waited for it, and the daemon that would have ended it was gone',
    tests: {
      'sandbox/init/covers.test.ts': ['a tool that is killed as it starts leaves no child that waits for it'],
    },
  },
  {
    as: 'an ordinary user',
    seed: null,
    found: 'a call whose arguments a thread judges ended the daemon, where none could be made',
    tests: { 'schema/argument-judge.test.ts': ['where the machine makes no thread'] },
  },
  {
    as: 'either',
    seed: null,
    found: 'a server that ended while there was no descriptor to look with took the daemon along',
    tests: { 'integration/faults.test.ts': ['23: a server that ends while descriptors have run out'] },
  },
  {
    as: 'either',
    seed: null,
    found: 'a server that could not be spoken to any more kept its instance ready',
    tests: {
      'supervisor/supervisor.test.ts': [
        'a server that closes its output and lives on is ended',
        'a server that reads no more is ended',
      ],
    },
  },
  {
    as: 'root',
    seed: null,
    found: 'an engine that hung held up the end of a daemon for minutes',
    tests: { 'docker/faults.test.ts': ['that hangs holds up the end of a daemon for seconds'] },
  },
  {
    as: 'root',
    seed: null,
    found: 'the folder of a daemon that was killed before it could write who it was stayed',
    tests: { 'docker/janitor.test.ts': ['removes the folder of one that was killed'] },
  },
  {
    as: 'root',
    seed: null,
    found: 'a daemon waited ten minutes for a container that one before it had removed',
    tests: { 'docker/janitor.test.ts': ['waits for none that one before it removed'] },
  },
]
