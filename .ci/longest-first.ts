// The order of the test files: what takes longest begins first, so that nobody waits for it alone at the end.
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes long, longest first; the others go by their size, and what is short to read ends last. */
const longest = [
  'verify/battery',
  'docker/dockerfile',
  'docker/gvisor-ended',
  'escape/persistence',
  'integration/killed',
  'escape/egress',
  'integration/many-lives',
  'integration/unproven',
  'docker/verify',
  'docker/gvisor-verify',
  'verify/not-run',
  'integration/reload',
  'integration/governance',
  'verify/learn/servers',
  'chaos/plants',
  'verify/learn/learn',
  'docker/other-hands',
  'integration/faults',
  'integration/pool',
  'integration/serve',
  'daemon/journal-feed',
  'integration/stdio',
  'verify/unknown',
  'integration/faults-of-servers',
  'fuzz/replay',
  'integration/run',
  'docker/faults',
  'verify/stated',
  'docker/hostile-image',
  'integration/told-by-verbs',
  'verify/in-time',
  'cli/learn',
  'docker/many-lives',
  'docker/same-bytes',
  'docker/same-secrets',
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
