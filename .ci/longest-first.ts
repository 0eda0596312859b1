// The order of the test files: what takes longest begins first, so that nobody waits for it alone at the end.
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes long, longest first; the others go by their size, and what is short to read ends last. */
const longest = [
  'verify/battery',
  'docker/dockerfile',
  'verify/learn/learn',
  'verify/learn/servers',
  'verify/not-run',
  'integration/governance',
  'docker/verify',
  'integration/killed',
  'chaos/plants',
  'escape/egress',
  'docker/gvisor-verify',
  'cli/learn',
  'fuzz/replay',
  'integration/reload',
  'chaos/broken-off',
  'egress/leaks',
  'cli/usage',
]

/** The file's place among them, or the one after the last. */
const placeOf = ({ moduleId }: TestSpecification): number => {
  const place = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`))
  return place < 0 ? longest.length : place
}

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => placeOf(one) - placeOf(other))
  }
}
