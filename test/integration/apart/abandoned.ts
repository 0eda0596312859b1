// A test that is in the midst of it: its daemon answers, and nothing has been disposed of.
import { daemon } from '../../support/daemon.ts'

const { process: started } = await daemon()
console.log(started.pid)
