// The order of the test files: what takes longest begins first, so that nobody waits for it alone at the end.
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Whole batteries one after the other, which are short to read; the others go by their size. */
const longest = ['verify/battery', 'docker/verify']

const isLong = ({ moduleId }: TestSpecification): boolean =>
  longest.some((name) => moduleId.endsWith(`/test/${name}.test.ts`))

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const [long = [], others = []] = [true, false].map((wanted) =>
      files.filter((file) => isLong(file) === wanted),
    )
    return [...long, ...(await super.sort(others))]
  }
}
