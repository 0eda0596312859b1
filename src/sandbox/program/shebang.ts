// A command that is itself a script: which program its first line names.

/** What a `#!` line asks for. */
export interface Shebang {
  /** Absolute path of the interpreter, or its bare name where the line goes through env */
  readonly interpreter: string
  /** The one argument that the kernel would pass on, or null */
  readonly argument: string | null
}

/**
 * Returns what the first line of a script says, null where the file is no script, and a sentence where it says
 * something that can't be followed: `env` with options or variables, a relative path, a line without an end.
 */
export const readShebang = (head: Buffer): Shebang | string | null => {
  if (head.toString('latin1', 0, 2) !== '#!') return null
  const end = head.indexOf('\n')
  // Linux cuts the line at 255 bytes.
  if (end < 0 || end > 255) return 'its first line is longer than the kernel reads'
  const [interpreter, argument] = splitOnce(head.toString('utf8', 2, end).trim())
  if (!interpreter.startsWith('/')) return 'its first line does not name an absolute path'
  if (!interpreter.endsWith('/env')) return { interpreter, argument }
  if (argument === null || !/^[A-Za-z0-9][A-Za-z0-9._+-]*$/.test(argument))
    return 'its first line gives env more than one bare name'
  return { interpreter: argument, argument: null }
}

const splitOnce = (line: string): [string, string | null] => {
  const gap = line.search(/[ \t]/)
  return gap < 0 ? [line, null] : [line.slice(0, gap), line.slice(gap).trim()]
}
