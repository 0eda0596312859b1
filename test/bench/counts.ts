// What a script of the benchmark takes on its command line: whole numbers, in their order.
import { basename } from 'node:path'

const statusUsage = 7

/**
 * Reads whole numbers above 0, each under its name, with the default where none is given.
 *
 * `--help` prints what the script takes and ends the process with 0; anything else that is no such number, or one too
 * many, ends it with 7 and says so.
 */
export function counts<T extends Readonly<Record<string, number>>>(
  defaults: T,
  args: readonly string[] = process.argv.slice(2),
): Readonly<Record<keyof T, number>> {
  const names = Object.keys(defaults)
  const taken = names.map((name) => `[${name} = ${defaults[name]}]`).join(' ')
  const usage = `${basename(process.argv[1] ?? '')} ${taken}`
  if (args.includes('--help')) {
    process.stdout.write(`node test/bench/${usage}\n`)
    process.exit(0)
  }
  const wrong = args.find((arg, index) => index >= names.length || !/^[1-9]\d*$/.test(arg))
  if (wrong !== undefined) {
    process.stderr.write(`${wrong}: use whole numbers above 0: ${usage}\n`)
    process.exit(statusUsage)
  }
  const given = names.map((name, index) => [name, Number(args[index] ?? defaults[name])] as const)
  return Object.fromEntries(given) as Record<keyof T, number>
}
