// A program that ends by itself in gVisor has met no limit: only the end of the whole sandbox stands for one there.
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAssertion } from '../../src/schema/assertion.ts'
import type * as Verify from '../../src/verify/verify.ts'
import { compile } from '../support/compile.ts'
import { otherBuild } from '../support/other-build.ts'
import { gvisor, hasGvisor, ownEngine, type OwnEngine } from '../support/own-engine.ts'
import { tempDir } from '../support/temp-dir.ts'

/** In the place of the probes' program: is a neighbour, and ends without a word where anything is to be tried. */
const silent = String.raw`
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  char line[16384] = "";
  FILE *list = fopen(argv[argc - 1], "r");
  if (list == NULL || fgets(line, sizeof line, list) == NULL || strncmp(line, "hold-listeners", 14) != 0) return 0;
  puts("{\"outcome\":\"open\",\"ms\":0,\"text\":\"\"}");
  fflush(stdout);
  while (getchar() != EOF) continue;
  return 0;
}`

/** The same, and inside takes so many processes first that the whole sandbox ends, before it has said that it tries anything. */
const greedy = silent
  .replace(
    'return 0;',
    '{ for (int left = isInside(argv[argc - 1]) ? 200 : 0; left > 0; left--) if (fork() == 0) return pause(); return 0; }',
  )
  .replace(
    'int main',
    'static int isInside(const char *list) { return strncmp(list, "/sallyport/", 11) == 0; }\nint main',
  )
  .replace('#include <stdio.h>', '#include <stdio.h>\n#include <unistd.h>')

describe.runIf(hasGvisor)('a program that ends before it has tried anything', () => {
  let engine: OwnEngine
  beforeAll(async () => {
    engine = await ownEngine({ runtimes: gvisor })
  })
  afterAll(() => engine[Symbol.asyncDispose]())

  test.each([
    ['by itself', silent, /the program ended by itself, with status 0/],
    ['with the whole sandbox', greedy, /the sandbox ended before anything was tried in it/],
  ])(
    '%s is stopped by no limit of gVisor’s',
    async (_, program, why) => {
      await using home = await tempDir()
      await using build = await otherBuild()
      compile(join(build.path, 'dist/libexec', process.arch, 'sallyport-probes'), program)
      const { verifyProfile } = build.load('verify/verify.js') as typeof Verify
      const text = 'cannot exceed memory'
      const parsed = parseAssertion(text)
      if (!parsed.ok) throw new Error(parsed.problem.expected)
      const found = await verifyProfile('offline', {
        host: { env: engine.environment, home: home.path, uid: process.getuid?.() ?? -1 },
        driver: 'docker',
        runtime: 'runsc',
        controls: ['process-limit', 'memory-limit', 'first-process'],
        // An error is what is to be seen, and a second try of all of it would come to the same.
        isTriedOnce: true,
        assertions: [{ assertion: parsed.assertion, text, reason: 'a test', file: 'a test', line: 1 }],
      })
      const taking = ['resources.processes', 'resources.threads', 'resources.memory', 'ipc.kill-pid-1']
      const said = new Map(
        found.probes.map(({ id, verdict, evidence }) => [id, `${verdict}: ${evidence[0]}`]),
      )
      for (const id of taking)
        expect(said.get(id)).toMatch(new RegExp(`^error: .*: not tried: unknown ${why.source}`))
      const limits = found.assertions.filter((it) => /^cannot exceed (memory|pids)$/.test(it.text))
      expect(limits.map(({ verdict }) => verdict)).toEqual(['error', 'error'])
      expect(found.verdict).toBe('error')
    },
    600_000,
  )
})
