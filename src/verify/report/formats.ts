// The formats of a report.
import type { Format } from './format.ts'
import { htmlReport } from './html.ts'
import { jsonReport } from './json.ts'
import { junitReport } from './junit.ts'
import { sarifReport } from './sarif.ts'
import { tapReport } from './tap.ts'
import { textReport } from './text.ts'

/** Every format by its name on the command line. */
export const formats = {
  text: textReport,
  json: jsonReport,
  junit: junitReport,
  sarif: sarifReport,
  tap: tapReport,
  html: htmlReport,
} as const satisfies Readonly<Record<string, Format>>
