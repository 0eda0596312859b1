// How the tests run: real processes, which mostly wait for each other.
import { defineConfig } from 'vitest/config'
import LongestFirst from './.ci/longest-first.ts'

export default defineConfig({
  cacheDir: 'dist/.vitest',
  test: {
    // Its default is below node_modules, which servers' packages are digested with
    fsModuleCachePath: 'dist/.vitest/modules',
    globalSetup: 'test/support/probe-folder.ts',
    include: ['test/**/*.test.ts'],
    // A process of its own takes each file a third of a second of processor time: a test leaves nothing in its process that another
    // could find
    isolate: false,
    // Above the patience with which a test waits for what has to come, on a machine that is three times as slow, too
    testTimeout: 300_000,
    hookTimeout: 300_000,
    pool: 'forks',
    // What keeps two cores busy: a test takes two fifths of one and waits for what it has started
    maxWorkers: 5,
    sequence: { sequencer: LongestFirst },
    passWithNoTests: false,
  },
})
