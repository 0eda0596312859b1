// Launches of a verification: some beside each other, and what takes the machine when nothing else goes on.
import { expect, test } from 'vitest'
import { catalogue } from '../../../src/verify/catalogue.ts'
import { inLaunches, launchesOf, type Launch } from '../../../src/verify/lab/inside.ts'
import type { Trial } from '../../../src/verify/probe.ts'

const trial: Trial = { expected: '', attempts: [] }
const launches = launchesOf(catalogue.map((probe) => ({ probe, trial }))).map((launch) => ({ launch }))
const isApart = (launch: Launch): boolean => launch.some(({ probe }) => probe.isApart === true)

test('every probe is in one launch, with all others or by itself', () => {
  const [shared, ...alone] = launches.map(({ launch }) => launch.map(({ probe }) => probe))
  expect(shared?.filter(({ isAlone }) => isAlone === true)).toEqual([])
  expect(alone.filter(([probe, ...others]) => probe?.isAlone !== true || others.length > 0)).toEqual([])
  expect(new Set([shared, ...alone].flat())).toEqual(new Set(catalogue))
})

test('what takes memory, processes, processors or what others look at is launched when nothing else is', async () => {
  const going = new Set<Launch>()
  const begun: Launch[] = []
  let most = 0
  await inLaunches(launches, async ({ launch }) => {
    expect([...going].filter((other) => isApart(other) || isApart(launch))).toEqual([])
    begun.push(launch)
    going.add(launch)
    most = Math.max(most, going.size)
    for (let turn = 0; turn < begun.length; turn++) await new Promise((resolve) => setImmediate(resolve))
    going.delete(launch)
  })
  expect(most).toBe(4)
  expect(begun).toHaveLength(launches.length)
  const apart = begun.flatMap((launch) => (isApart(launch) ? launch.map(({ probe }) => probe.id) : []))
  expect(apart.toSorted()).toEqual([
    'environment.start',
    'files.protected',
    'files.staged',
    'resources.cpu',
    'resources.memory',
    'resources.processes',
    'resources.swap',
    'resources.threads',
  ])
})
