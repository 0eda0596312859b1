// A run as data: every value of every round, and what people are shown of them.
import { type Broken, type Figure, median, othersOf, spreadOf, verdicts } from './figures.ts'

/** As JSON. What was not measured is null. */
export function asData(
  machine: readonly string[],
  figures: readonly Figure[],
  broken: readonly Broken[],
): string {
  const said = {
    machine,
    figures: figures.map((figure) => ({
      ...figure,
      arms: figure.arms.map((arm) => ({ ...arm, median: median(arm.values), spread: spreadOf(arm.values) })),
    })),
    verdicts: figures.flatMap((figure) =>
      verdicts(figure).map((verdict) => ({
        figure: figure.id,
        ...verdict,
        others: othersOf(figure, verdict),
      })),
    ),
    broken,
  }
  return `${JSON.stringify(said, null, 2)}\n`
}
