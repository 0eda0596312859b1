// How the tests run: real processes, which mostly wait for each other.
import { defineConfig } from 'vitest/config'
import LongestFirst from './.ci/longest-first.ts'

/** Folders whose tests are of words and bytes, and leave nothing in their process that another test could find. */
const pure = ['call', 'config', 'journal', 'lib', 'schema'].map((folder) => `test/${folder}/**/*.test.ts`)
const all = 'test/**/*.test.ts'

export default defineConfig({
  cacheDir: 'dist/.vitest',
  test: {
    // Its default is below node_modules, which servers' packages are digested with
    fsModuleCachePath: 'dist/.vitest/modules',
    globalSetup: 'test/support/probe-folder.ts', // once for both
    // A process of its own takes each file a third of a second, which is most of what such tests take
    projects: [
      { extends: true, test: { name: 'pure', include: pure, isolate: false } },
      { extends: true, test: { name: 'real', include: [all, ...pure.map((path) => `!${path}`)] } },
    ],
    // Real processes on a machine that does other things too: once more, and the summary names who needed it
    retry: 1,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // What keeps two cores busy: a test takes two fifths of one and waits for what it has started
    maxWorkers: 5,
    sequence: { sequencer: LongestFirst },
    passWithNoTests: false,
  },
})
