// What is said of variables: their names, whatever is in their values.
import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { findProbesBinary } from '../../src/sandbox/init-binary.ts'
import type { ProfileSettings } from '../../src/schema/settings.ts'
import type { Answer } from '../../src/verify/attempt.ts'
import { givenProbes } from '../../src/verify/battery/given.ts'
import type { Scene } from '../../src/verify/probe.ts'
import { questionOf } from '../../src/verify/stated/questions.ts'

const answerWith = async (variables: Record<string, string>): Promise<Answer> => {
  const said = execFileSync(await findProbesBinary(), { env: variables, input: 'environment\n' })
  return JSON.parse(said.toString('latin1')) as Answer
}

const judged = async (name: string, answer: Answer) =>
  (await questionOf({ about: 'env', name }, {} as ProfileSettings, []))?.judge(answer, [])

const pem = '-----BEGIN KEY-----\nMIIsecret\nAWS_LINE=1\n'

test('no line of a value is taken for a variable, nor told', async () => {
  const answer = await answerWith({ PEM: pem, EMPTY: '', EQUAL: 'a=b' })
  expect(await judged('AWS_*', answer)).toEqual({
    verdict: 'pass',
    observed: 'absent',
    evidence: ['3 variables are there: EMPTY, EQUAL, PEM'],
  })
  expect(await judged('PE?', answer)).toMatchObject({ verdict: 'fail', observed: 'seen: PEM' })
  const scene = {
    spec: { environment: { PEM: pem, EMPTY: '', EQUAL: 'a=b' } },
    canaries: { word: 'canary' },
  } as unknown as Scene
  const probes = givenProbes.filter(({ group }) => group === 'environment')
  expect(probes.map((probe) => probe.trial(scene).attempts[0]?.meaning(answer).observed)).toEqual([
    'as expected',
    'as expected',
  ])
})

test('more variables than are read is an error, since one beyond may match', async () => {
  const many = Object.fromEntries(Array.from({ length: 70 }, (_, index) => [`V${index}`, 'x'.repeat(1000)]))
  const answer = await answerWith({ ...many, ZED: '1' })
  expect(await judged('ZED', answer)).toMatchObject({ verdict: 'error' })
})
