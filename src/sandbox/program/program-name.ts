// Recognising a program by its file's name, whatever version or build a distribution appends to it.

// A version, then a build or a platform: python3.11-dbg, node-22.1, perl5.36-x86_64-linux-gnu.
const suffix = String.raw`(?:-?v?\d+(?:\.\d+)*[a-z]?)?(?:-(?:dbg|debug|static|intel64|[a-z0-9_]+-linux-[a-z0-9]+))?`

/** Returns the pattern that the file names of these programs match, in any case. */
export const programNamed = (...names: readonly string[]): RegExp =>
  new RegExp(`^(?:${names.join('|')})${suffix}$`, 'i')
