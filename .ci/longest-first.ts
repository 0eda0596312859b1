// The order of the test files: what takes longest begins first, so that nobody waits for it alone at the end.
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes a minute and more, longest first; the others go by their size. */
const longest = [
  'verify/battery',
  'docker/dockerfile',
  'verify/learn/learn',
  'verify/learn/servers',
  'verify/not-run',
  'integration/governance',
  'docker/verify',
  'cli/learn',
  'integration/killed',
  'docker/gvisor-verify',
  'docker/faults',
  'chaos/plants',
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
