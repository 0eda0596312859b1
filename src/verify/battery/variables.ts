// Probe 145: no variable that loads code or carries a secret is given to a server by accident, by whoever's word.
import { finds, seen, type Attempt } from '../attempt.ts'
import { refusalOf, type Wanted, type Word } from '../lab/asked.ts'
import { families, ofSomeFamilies } from '../lab/variable-families.ts'
import { proxyVariables } from '../../lib/own-variables.ts'
import type { Probe } from '../probe.ts'

const asksFor = (label: string, word: Word, wanted: readonly Wanted[]): Attempt =>
  seen(
    label,
    async ({ launched }) => {
      if (launched === null) return 'everything'
      const given: string[] = []
      for (const it of wanted) {
        const code = await refusalOf(launched.lab, word, it)
        if (code !== 'ERR_ENVIRONMENT_REFUSED') given.push(`${it.name} ${code}`.trim())
      }
      return given.join(', ')
    },
    (text) => (text === '' ? null : `given: ${text}`),
  )

const asks = (label: string, word: Word, names: string): Attempt =>
  asksFor(
    label,
    word,
    names.split(' ').map((name) => ({ name, value: 'x', reason: null })),
  )

/** Beyond what one variable may hold, with its name, bytes. */
const tooLong = 131_072

const odd: readonly Wanted[] = ['x\0y', 'x'.repeat(tooLong)].map((value) => ({
  name: 'VERIFY',
  value,
  reason: null,
}))

const ofTheSupervisor = Object.keys(proxyVariables).map((name) => ({
  name,
  value: 'x',
  reason: 'a verification',
}))

export const variableProbes: readonly Probe[] = [
  {
    id: 'environment.families',
    number: 145,
    group: 'environment',
    protects:
      'No variable that loads code or carries a secret is given to a server, whoever lists it, without a written reason.',
    control: 'variables',
    trial: ({ spec }) => ({
      expected: 'a refusal of the launch for each',
      attempts: [
        ...Object.entries(families).map(([what, names]) => asks(`${what}, by its entry`, 'entry', names)),
        asks('of some families, by its profile', 'set', ofSomeFamilies),
        asks('of some families, passed on', 'pass', ofSomeFamilies),
        asks('what is no name', 'entry', 'A=B 1A A-B A\u00e9'),
        asksFor('a value with a NUL, and one that is too long', 'entry', odd),
        ...(spec.network.mode === 'none'
          ? []
          : [asksFor('what the supervisor sets itself, with a reason', 'entry', ofTheSupervisor)]),
        asks('of this machine, passed on', 'pass', 'HOME USER TERM TMPDIR'),
      ],
      outside: [
        finds(
          ['environment'],
          (text) => (text.includes('AWS_SECRET_ACCESS_KEY=') ? 'AWS_SECRET_ACCESS_KEY is inherited' : null),
          'variables of a process of this machine',
        ),
      ],
    }),
  },
]
