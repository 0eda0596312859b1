// Whole reports, word for word: what a format loses or says otherwise is seen here, whatever it is.
import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import type { Report } from '../../../src/verify/report/format.ts'
import { formats } from '../../../src/verify/report/formats.ts'
import { goldenPath } from '../../support/golden.ts'
import { hostile, mixed, partly, probe, reportOf, verification } from '../../support/verification.ts'

const inContainer = verification({
  profile: 'node',
  driver: 'docker',
  runtime: 'runsc',
  host: { kernel: '6.12.0', arch: 'arm64', uid: 0, tool: null },
  probes: [
    probe({ brokenArm: { control: 'mount-plan', observed: 'open', isRed: true } }),
    probe({ id: 'time.set', number: 109, group: 'time', errno: 'EPERM', layer: 'filter', durationMs: 2.5 }),
  ],
  assertions: [],
})

const report: Report = {
  ...reportOf(verification(), partly(), mixed(), inContainer),
  unusable: [{ driver: 'docker', why: hostile }],
}

/** But for this machine's name, and the page's style, which is looked at in a browser. */
const everywhere = (text: string): string =>
  text
    .replaceAll(`hostname="${hostname()}"`, 'hostname="machine"')
    .replace(/<style>.*?<\/style>/s, '<style/>')

test.each(Object.keys(formats) as (keyof typeof formats)[])('%s', async (format) => {
  await expect(everywhere(formats[format](report))).toMatchFileSnapshot(goldenPath('reports', format))
})

test.each(Object.keys(formats) as (keyof typeof formats)[])('%s of what holds', async (format) => {
  const text = everywhere(formats[format](reportOf(verification(), verification({ profile: 'node' }))))
  await expect(text).toMatchFileSnapshot(goldenPath('reports', `${format}-held`))
})
