// Prints the open files that a confined server may have.
import { planOf, run } from './plan.ts'

const { stdout } = await run(await planOf(['/bin/sh', '-c', 'ulimit -Hn']))
process.stdout.write(stdout)
