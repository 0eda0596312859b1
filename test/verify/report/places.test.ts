// A finding points at the file and line that decide, and at the profile's first line where none does.
import { expect, test } from 'vitest'
import { loadProfile } from '../../../src/config/profile.ts'
import { shippedFolder } from '../../../src/config/profile-layers.ts'
import { placesOf } from '../../../src/verify/report/places.ts'

const profile = await loadProfile('node', { folders: [], owners: [process.getuid?.() ?? 0] })
const files = new Map(
  ['node', 'workspace-read', 'offline'].map((name) => [`${name}.yaml`, `${shippedFolder}/${name}.yaml`]),
)
const placeOf = placesOf(profile, files)

test('of what a profile states itself, and of what it extends', () => {
  expect(placeOf('limits.pids')).toEqual({ path: `${shippedFolder}/node.yaml`, line: 9 })
  expect(placeOf('network.mode')).toEqual({ path: `${shippedFolder}/offline.yaml`, line: 13 })
})

test('and else of the profile itself', () => {
  expect(placeOf('name')).toEqual({ path: `${shippedFolder}/node.yaml`, line: 1 })
})
