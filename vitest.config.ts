// How the tests run: real processes need time and must not fight over two cores.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  cacheDir: 'dist/.vitest',
  test: {
    // Its default is below node_modules, which servers' packages are digested with
    fsModuleCachePath: 'dist/.vitest/modules',
    globalSetup: 'test/support/probe-folder.ts',
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: 'forks',
    maxWorkers: 2,
    passWithNoTests: false,
  },
})
