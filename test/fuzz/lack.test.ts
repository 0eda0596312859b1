// A machine without what the C is built with is told so, in one line, before anything is tried.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { patienceMs } from '../support/patience.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ran } from './native.ts'

const fuzz = fileURLToPath(new URL('fuzz.ts', import.meta.url))

test.each([
  [
    'no clang',
    null,
    /^clang cannot be started \(spawnSync clang ENOENT\); install clang and libclang-rt-dev .*\n$/,
  ],
  [
    'a clang without libFuzzer',
    '#!/bin/sh\nwhile read -r _; do :; done\nexit 1\n', // it takes what it is given, as clang does
    /^clang builds nothing with libFuzzer; install clang and .*\n$/,
  ],
])('%s', async (_, clang, said) => {
  await using folder = await tempDir()
  await mkdir(join(folder.path, 'bin'))
  if (clang !== null) await writeFile(join(folder.path, 'bin/clang'), clang, { mode: 0o755 })
  const args = [
    `PATH=${join(folder.path, 'bin')}`,
    process.execPath,
    fuzz,
    '--seconds',
    '1',
    '--only',
    'gate',
  ]
  const { code, stdout, stderr } = await ran('/usr/bin/env', args, patienceMs)
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(said) })
})
