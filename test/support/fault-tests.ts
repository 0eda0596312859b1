// What a supervisor is trusted with under fault, number by number, and the tests that show it: docs/faults.md is made from this.

/** One promise, and where it is kept. */
export interface FaultRow {
  readonly number: number
  readonly fault: string
  /** File below test/ -> how titles of its tests begin, or what they hold */
  readonly tests: Readonly<Record<string, readonly string[]>>
}

export const faultRows: readonly FaultRow[] = [
  {
    number: 1,
    fault:
      'the daemon is killed within 20 ms of a launch, 300 times amid 900 of them (as an ordinary user 34, and as often as SALLYPORT_KILLS says, spread evenly), and amid a call’s',
    tests: {
      'escape/persistence.test.ts': ['at any instant of'],
      'integration/killed.test.ts': ['%d ms into the launch for a call'],
      'sandbox/init/stop.test.ts': ['a supervisor killed at any instant of a launch'],
    },
  },
  {
    number: 2,
    fault: 'the daemon is killed while servers run, at any step of a call',
    tests: {
      'escape/persistence.test.ts': ['leaves nothing of servers that run'],
      'integration/killed.test.ts': ['servers run and nobody calls', '$step of a call'],
      'integration/snapshots.test.ts': ['killed as it writes a snapshot'],
    },
  },
  {
    number: 3,
    fault: 'the sandbox tool, PID 1 or the server is killed',
    tests: {
      'integration/faults.test.ts': ['3: '],
      'sandbox/bubblewrap/driver.test.ts': ['when something else kills a part'],
      'docker/other-hands.test.ts': ['that somebody kills amid a call'],
    },
  },
  {
    number: 4,
    fault: 'a server ignores SIGTERM',
    tests: {
      'integration/faults-of-servers.test.ts': ['4: '],
      'supervisor/supervisor.test.ts': ['all servers stop at once, within the ladder'],
      'integration/serve.test.ts': ['ends with 0 on SIGTERM'],
    },
  },
  {
    number: 5,
    fault: 'a server needs most of its time to tidy up',
    tests: { 'integration/faults.test.ts': ['5: '] },
  },
  {
    number: 6,
    fault: 'a server forks twice, leaves its session, closes its streams',
    tests: {
      'integration/faults-of-servers.test.ts': ['6: '],
      'escape/persistence.test.ts': ['a server that forks twice'],
      'sandbox/init/stop.test.ts': ['what the server left behind ends with it'],
    },
  },
  {
    number: 7,
    fault: 'children hold the output of a server that ended',
    tests: {
      'integration/faults.test.ts': ['7: '],
      'sandbox/init/server.test.ts': ['shows the end of its output although the server and PID 1 live on'],
    },
  },
  {
    number: 8,
    fault:
      'a fork bomb, a thread bomb, ten thousand orphans, ten thousand that have ended and for which nobody waits',
    tests: {
      'integration/faults-of-servers.test.ts': ['8: '],
      'integration/masses.test.ts': ['8: '],
      'sandbox/limits/watchdog.test.ts': ['is followed by a pause in keeping'],
      'escape/resources.test.ts': ['a fork bomb stops', 'a thread bomb stops'],
      'sandbox/init/server.test.ts': ['reaps ten thousand orphans'],
    },
  },
  {
    number: 9,
    fault: 'a server is stopped by a signal',
    tests: {
      'integration/faults.test.ts': ['9: '],
      'docker/other-hands.test.ts': ['that somebody has paused'],
      'sandbox/init/stop.test.ts': ['SIGTERM reaches a server that is stopped'],
    },
  },
  {
    number: 10,
    fault: 'a server crashes at every start',
    tests: {
      'integration/faults.test.ts': ['10: '],
      'integration/at-rest.test.ts': ['10: '],
      'supervisor/instance/restart.test.ts': [
        'one that was ready comes back on the schedule',
        'a steady life starts the schedule anew',
        'a storm is so many ends',
      ],
      'integration/halts.test.ts': ['a storm of ends halts its server'],
      'supervisor/storms.test.ts': ['processes of one call each', 'are held against no server'],
      'supervisor/session/attempts.test.ts': ['none is made any more'],
    },
  },
  {
    number: 11,
    fault: 'a server crashes once it was ready, or in a call',
    tests: {
      'integration/faults-of-servers.test.ts': ['11: '],
      'supervisor/supervisor.test.ts': ['a server that crashes in a call fails that call once'],
      'integration/faults.test.ts': ['3: '],
    },
  },
  {
    number: 12,
    fault: 'the daemon is killed with 50 servers; a second one comes',
    tests: {
      'integration/many-lives.test.ts': ['12: '],
      'integration/serve.test.ts': ['refuses to be the second on a runtime directory'],
    },
  },
  {
    number: 13,
    fault:
      'servers are started and stopped again and again (1000 times, 40 in containers, as often as SALLYPORT_CYCLES says)',
    tests: { 'integration/many-lives.test.ts': ['13: '], 'docker/many-lives.test.ts': ['13: '] },
  },
  {
    number: 14,
    fault: 'a flood of output that its host does not read',
    tests: {
      'integration/unread.test.ts': ['14: '],
      'integration/faults-of-servers.test.ts': ['14: '],
      'supervisor/hostile-server.test.ts': ['a flood waits for a host that does not read'],
    },
  },
  {
    number: 15,
    fault: 'a line without end',
    tests: {
      'integration/faults-of-servers.test.ts': ['15: '],
      'integration/masses.test.ts': ['15: '],
      'supervisor/hostile-server.test.ts': ['a line without end ends the session'],
      'lib/lines.test.ts': ['what is held of a line without end'],
    },
  },
  {
    number: 16,
    fault: 'a flood of stderr',
    tests: {
      'integration/faults-of-servers.test.ts': ['16: '],
      'supervisor/hostile-server.test.ts': ['a flood of stderr hinders nothing'],
      'supervisor/instance/log-ring.test.ts': ['the newest bytes are kept'],
    },
  },
  {
    number: 17,
    fault:
      'lines in any pieces and number, garbage, blank lines, batches, ids that are used twice or known to nobody',
    tests: {
      'integration/faults-of-servers.test.ts': ['17: '],
      'integration/masses.test.ts': ['17: '],
      'supervisor/floods.test.ts': ['blank lines are nothing'],
      'lib/lines.test.ts': ['however the bytes are cut'],
      'supervisor/hostile-server.test.ts': ['a line of garbage', 'answers that nobody waits for'],
      'supervisor/timeouts.test.ts': ['an answer that comes too late'],
      'supervisor/bad-input.test.ts': ['bytes that are not UTF-8'],
      'supervisor/hostile-answers.test.ts': ['a flood of notifications'],
    },
  },
  {
    number: 18,
    fault: 'a host that does not read',
    tests: {
      'integration/unread.test.ts': ['18: '],
      'rpc/connection.test.ts': ['slows nobody else', 'is cut off once its unread answers'],
    },
  },
  {
    number: 19,
    fault: 'a host that goes away in a call',
    tests: {
      'integration/faults-of-servers.test.ts': ['19: '],
      'integration/stdio.test.ts': ['a host that is killed in a call leaves an outcome'],
      'rpc/connection.test.ts': ['cancels what a host that went away'],
      'supervisor/waiting.test.ts': ['a host that dies while its call is on its way'],
    },
  },
  {
    number: 20,
    fault: 'a thousand calls at once',
    tests: {
      'integration/turns.test.ts': [
        'over one connection to %s are each answered',
        'in a session with %s are each answered',
        'in two sessions that share a process',
        'of which each has a process',
        'that does not come in time is refused',
      ],
      'call/turns.test.ts': ['in the order of coming'],
      'rpc/connection.test.ts': ['answers ERR_BUSY beyond 1024 calls'],
    },
  },
  {
    number: 21,
    fault: 'a server closes a stream and lives, ends at once, or becomes another program',
    tests: {
      'integration/faults-of-servers.test.ts': ['21: '],
      'integration/faults.test.ts': ['21: '],
      'supervisor/hostile-server.test.ts': [
        'a server that closes its output and lives on',
        'a server that ends at once',
      ],
    },
  },
  {
    number: 22,
    fault:
      'arguments and variables of any bytes and length; names that are not UTF-8; a program that is not there',
    tests: {
      'sandbox/program/package.test.ts': ['with what %s, though there is a name'],
      'sandbox/mounts/protected.test.ts': ['is refused with a folder whose name is not UTF-8'],
      'integration/faults-of-servers.test.ts': ['22: '],
      'sandbox/init/server.test.ts': [
        'gets argv, environment and folder exactly',
        'has 128 KiB in one variable',
      ],
      'supervisor/hostile-server.test.ts': ['a program that cannot be started'],
    },
  },
  {
    number: 23,
    fault: 'no room on the disk, no descriptors, no memory for a process, no thread to be made',
    tests: {
      'integration/faults.test.ts': ['23: '],
      'integration/unproven.test.ts': [
        'a stop of a session fails by name',
        'a daemon that is told to end does',
      ],
      'integration/at-rest.test.ts': ['23: '],
      'schema/argument-judge.test.ts': ['where the machine makes no thread'],
      'integration/disk.test.ts': [
        'that fails in any way blocks every call',
        'that has no room for a long answer',
      ],
    },
  },
  {
    number: 24,
    fault: 'the clock jumps',
    tests: {
      'integration/faults.test.ts': ['24: '],
      'integration/clock.test.ts': ['an approval that stands %s', 'a clock that is a year ahead'],
    },
  },
  {
    number: 25,
    fault: 'a reload',
    tests: {
      'integration/reload.test.ts': [
        'stops the servers that it changes',
        'follows a SIGHUP',
        'by a SIGHUP is not noticed',
      ],
    },
  },
  {
    number: 26,
    fault: 'one process of a server uses up the memory',
    tests: {
      'integration/faults-of-servers.test.ts': ['26: '],
      'escape/resources.test.ts': ['memory that is used up ends the whole tree'],
      'sandbox/bubblewrap/limits.test.ts': ['hog ends with its whole tree'],
    },
  },
]
