// Programs that fetch a package at each start: watched, they show what fetching needs, and nothing of the server.
import { basename } from 'node:path'
import { SallyportError } from '../../errors.ts'
import { packageRunnerCalled } from '../../sandbox/program/package-runners.ts'

/** Throws ERR_USAGE where the command is such a program, with what is learned instead. */
export const refuseRunner = (command: string, args: readonly string[]): void => {
  const found = packageRunnerCalled([basename(command)])
  if (found === null) return
  const packages = args.filter((arg) => !arg.startsWith('-') && !found.subcommands.flat().includes(arg))
  const name = packages[0] ?? null
  const way =
    found.ecosystem === 'npm'
      ? `npm install ${name ?? 'NAME@VERSION'}, then learn node with the file that its package.json names under \`bin\``
      : `pip install --target FOLDER ${name ?? 'NAME==VERSION'}, then learn python3 with its script`
  throw new SallyportError(
    'ERR_USAGE',
    `${basename(command)} fetches a package at each start, so its draft would be of fetching, and of code that nobody digested; install it into a folder of its own: ${way}`,
    { command },
  )
}
