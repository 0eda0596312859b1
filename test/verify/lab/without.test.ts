// What the program says that takes the tool's place to leave a control out: a launch that fails by it gives that as its reason.
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { findProbesBinary } from '../../../src/sandbox/init-binary.ts'

test.each([
  ['a folder that is not there', '+/nowhere', '/nowhere: No such file or directory'],
  ['a rule that is none', '1 2', 'read a rule: Invalid argument'],
])('gives up with its reason at %s', async (_, rule, said) => {
  const { status, stderr } = spawnSync(await findProbesBinary(), ['without', '/bin/true', rule, '', 'x'], {
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 125, stderr: `without: ${said}\n` })
})
