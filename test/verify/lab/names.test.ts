// The names that verify asks for are the names that launches are held to: none is missing there, and none is untried.
import { expect, test } from 'vitest'
import { inHomes, kernelAndRuntime, socketVariables, system } from '../../../src/sandbox/mounts/denials.ts'
import { protectedNames } from '../../../src/sandbox/mounts/protected.ts'
import { words } from '../../../src/lib/words.ts'
import { homeNames, machineNames, projectNames, socketNames } from '../../../src/verify/lab/names.ts'

test.each([
  ['the machine', machineNames, [...kernelAndRuntime, ...words(system)]],
  ['homes', homeNames, Object.values(inHomes).flatMap(words)],
  ['sockets', socketNames, words(socketVariables)],
  ['projects', projectNames, [...protectedNames]],
])('of %s', (_, tried, held) => {
  expect(tried.toSorted()).toEqual(held.toSorted())
})
