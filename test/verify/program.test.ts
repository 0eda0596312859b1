// Which files may run as a server of an image, found in its own root by hand.
import { statSync } from 'node:fs'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { plannedPrograms } from '../../src/verify/server/program.ts'
import { mountOf, planOf } from '../support/plan.ts'
import { tempDir } from '../support/temp-dir.ts'

const identityOf = (path: string) => {
  const { dev, ino } = statSync(path, { bigint: true })
  return [{ dev, ino }]
}

test.each([
  ['a program behind links', null, 'binary'],
  ['a script’s interpreter', '#!/bin/sh -e\n', '/bin/sh'],
  ['what env finds for a script, in the server’s PATH', '#!/usr/bin/env sh\n', '/usr/bin/sh'],
  ['nothing, of a script whose interpreter is not there', '#!/nowhere/sh\n', null],
])('is %s', async (_, script, expected) => {
  await using folder = await tempDir()
  const at = (name: string): string => join(folder.path, name)
  await writeFile(at('binary'), script ?? 'no script')
  await symlink('binary', at('relative'))
  await symlink(at('relative'), at('absolute'))
  const { spec } = await planOf([at('absolute')])
  const found = plannedPrograms(spec, process.pid)
  expect(found).toEqual(expected === null ? [] : identityOf(expected === 'binary' ? at('binary') : expected))
})

test('is what is mounted at its path, and nothing where links go round', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'program')
  await symlink(path, path)
  expect(plannedPrograms((await planOf([path])).spec, process.pid)).toEqual([])
  const mounted = await planOf([path], { spec: { mounts: [mountOf('/bin/sh', path)] } })
  expect(plannedPrograms(mounted.spec, process.pid)).toEqual(identityOf('/bin/sh'))
})
