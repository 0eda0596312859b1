import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isRoot } from '../support/user.ts'
import { invariants } from './account.ts'
import { groups } from './plants.ts'

const chaos = fileURLToPath(new URL('chaos.ts', import.meta.url))
/** What cannot be brought about without root, without a control group of ours, or without an engine that starts */
const unplanted = (said: string): ReadonlySet<string> =>
  new Set([
    ...(isRoot ? [] : ['mounts']),
    ...(groups === null ? ['cgroups'] : []),
    ...(said.includes('without containers:') ? ['containers'] : []),
  ])

/** What is found of those whose end is waited for: what was planted, and not what would have been gone a little later */
const found: Readonly<Record<string, RegExp>> = {
  answers: /had no answer.*told twice, or unasked/s,
  untouched: /a session of steady .*was told.*steady was i-.*and is/s,
  configured:
    /changed is said to be , and is plain.*a reload was told done.*no event.*the log does not tell/s,
  alone: /two daemons run.*wrote to the journal while/s,
  flat: /^descriptors: .*socket/,
  level: /MiB alive/,
  credentials:
    /sleep \(\d+\) has one in its environment.*killed, and these live on: sleep.*has one in its arguments/s,
  processes: /sleep \(\d+\) sleep 600/,
  mounts: /\/planted/,
  cgroups: /\/planted-/,
  sockets: /\/planted\.sock/,
  files: /\/planted/,
}

test('a run of chaos in which every invariant is broken on purpose finds each of them, by what was done', () => {
  const args = [chaos, '--seconds', '4', '--seed', '1', '--plant']
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 580_000 })
  const broken = [...stdout.matchAll(/^BROKEN (\w+):/gm)].map(([, name = '']) => name)
  const missing = unplanted(stdout)
  expect(broken.toSorted(), stdout).toEqual(
    Object.keys(invariants)
      .filter((name) => !missing.has(name))
      .toSorted(),
  )
  for (const [name, words] of Object.entries(found).filter(([name]) => !missing.has(name))) {
    const told = [...stdout.matchAll(new RegExp(`^ +[\\d.]+  BROKEN ${name}: (.*)$`, 'gm'))]
    expect(told.map(([, detail]) => detail).join('\n'), name).toMatch(words)
  }
  expect(stdout).toContain('; again with --seed 1 --seconds 4 --plant\n')
  expect(status).toBe(1)
}, 600_000)
