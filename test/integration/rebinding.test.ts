// A resolver that says one thing to whoever judges and another to whoever dials finds nobody of the second kind.
import { beforeAll, describe, expect, test } from 'vitest'
import { runApart } from '../support/apart.ts'
import { isRoot } from '../support/user.ts'

interface Outcome {
  readonly at: string | null
  readonly reason: string | null
  readonly asked: number
}

// In a user namespace the machine's root folder is nobody's, so that no daemon believes a configuration there: it takes root
// to make such a machine, for an ordinary user's daemon too.
describe.runIf(isRoot).each([
  ['root', 'self'],
  ['an ordinary user', 'ordinary'],
] as const)('through a whole daemon of %s, on a machine whose resolver lies', (_, user) => {
  let outcomes: Record<string, Outcome> = {}
  let ran: readonly string[] = []
  let reached: readonly string[] = []
  beforeAll(async () => {
    const told = (await runApart('integration/apart/rebinding.ts', '127.0.0.1 localhost\n', user)) as {
      readonly outcomes: Record<string, Outcome> & { readonly run: readonly string[] }
      readonly reached: readonly string[]
    }
    ;({ outcomes, reached } = told)
    ran = told.outcomes.run
  }, 60_000)

  const publicly = '::ffff:93.184.216.34'
  const refused = (reason: string): Outcome => ({ at: null, reason: `address-refused:${reason}`, asked: 1 })
  const goesTo = (at: string): Outcome => ({ at, reason: null, asked: 1 })

  test('a name that rebinds is dialled where it was judged, asked for once, and refused when it leads inwards', () => {
    expect(outcomes['rebinding.test']).toEqual(goesTo(publicly))
    expect(outcomes['rebinding.test again']).toEqual(refused('loopback'))
    expect(outcomes['rebinding.test a third time']).toEqual(refused('loopback'))
  })

  test('so it is by `sallyport run`', () => {
    expect(ran).toEqual([`second.test:7000 at ${publicly}`, 'nowhere'])
  })

  test('of many records and two families, those that lead inwards are dropped', () => {
    expect(outcomes['many.test']).toEqual(goesTo('::ffff:93.184.216.40'))
    expect(outcomes['families.test']).toEqual(goesTo(publicly))
    expect(outcomes['all.test']).toEqual(refused('private'))
  })

  test('a chain of names is judged by where it ends', () => {
    expect(outcomes['chain.test']).toEqual(refused('private'))
    expect(outcomes['long.test']).toEqual(goesTo(publicly))
  })

  test('a name that leads inwards is refused, and reached where its entry says private', () => {
    expect(outcomes['private.test']).toEqual(refused('private'))
    expect(outcomes['metadata.test']).toEqual(refused('metadata'))
    expect(outcomes['own.test']).toEqual(goesTo('::ffff:127.0.0.1'))
  })

  test('a host that carries a credential is judged anew for each connection, and no secret follows it inwards', () => {
    expect(outcomes['swapped.test']).toEqual(goesTo(publicly))
    expect(outcomes['swapped.test again']).toEqual(refused('loopback'))
    expect(reached.filter((line) => line.includes('token'))).toEqual([
      `swapped.test:7000 at ${publicly} with the token`,
    ])
  })

  test('nobody inside was dialled, by any name', () => {
    const inwards = reached.filter((line) => !/ at ::ffff:93\.184\.216\.\d+( with the token)?$/.test(line))
    expect(inwards).toEqual(['own.test:7000 at ::ffff:127.0.0.1'])
  })
})
