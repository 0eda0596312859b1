// Opens a log again and again, each time at the instant that it is told: `open-log.ts PATH`.
import { closeSync } from 'node:fs'
import { openLog } from '../../../src/cli/daemon-log.ts'

process.on('message', (at: number) => {
  while (Date.now() < at) continue
  try {
    closeSync(openLog(process.argv[2] ?? ''))
    process.send?.('opened')
  } catch (error) {
    process.send?.(String(error))
  }
})
