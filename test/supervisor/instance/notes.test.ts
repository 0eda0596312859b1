// What is told of what happens often: each kind at its beginning, and ever more seldom.
import { expect, test } from 'vitest'
import { Notes } from '../../../src/supervisor/instance/notes.ts'
import type { Happening } from '../../../src/supervisor/ports.ts'

const told = (add: (notes: Notes) => void): readonly Happening['detail'][] => {
  const events: Happening[] = []
  add(new Notes((event) => void events.push(event), { server: 'fixture', principal: '1000' }))
  return events.map(({ detail }) => detail)
}

test('the first, the second, the fourth is told, each with how many there were', () => {
  const counts = told((notes) => {
    for (let time = 0; time < 9; time++) notes.add('session/garbage', null, {})
  }).map(({ count }) => count)
  expect(counts).toEqual([1, 2, 4, 8])
})

test('what is declined for one reason hides nothing that is declined for another', () => {
  const reasons = told((notes) => {
    for (let time = 0; time < 4; time++) notes.add('session/declined', null, { reason: 'late' })
    notes.add('session/declined', null, { reason: 'queue' })
    for (let time = 0; time < 2; time++) notes.add('session/input-answered', null, { reason: null })
    notes.add('session/input-answered', null, { reason: 'queue' })
  }).map(({ reason }) => reason)
  expect(reasons).toEqual(['late', 'late', 'late', 'queue', null, null, 'queue'])
})
