import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

// V8 passes over a flag that it does not know, or can't read, and says so on stderr alone.
test('V8 knows what the daemon tells it', () => {
  const engine = new URL('../../src/lib/engine.ts', import.meta.url).href
  const script = `import { inlineMore, markLater, mayGrow, optimizeSooner } from '${engine}'; mayGrow(false); mayGrow(true); inlineMore(); optimizeSooner(); markLater()`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})
