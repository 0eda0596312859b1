// How the tests run: real processes need time and must not fight over two cores.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  cacheDir: 'dist/.vitest',
  test: {
    // Its default is below node_modules, which servers' packages are digested with
    fsModuleCachePath: 'dist/.vitest/modules',
    globalSetup: 'test/support/probe-folder.ts',
    include: ['test/**/*.test.ts'],
    // Real processes on a machine that does other things too: once more, and the summary names who needed it
    retry: 1,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 3,
    passWithNoTests: false,
  },
})
