// Globs in linear space and without regular expressions of anybody's, so that no pattern can stall the daemon; nor a value, where steps are counted.

/** Steps that comparing may still take; who shares it is counted together. */
export interface Effort {
  left: number
  /** What values say to other readers, found out once for all who share it */
  readonly readings?: Map<string, readonly string[] | null>
}

const endless: Effort = { left: Infinity }

/** `*` stands for any run of characters, `?` for one; everything else for itself. Used for names and permissions. */
export const matchesName = (glob: string, value: string): boolean => matchesText(glob, value) === true

/** The same of any text; null where that takes more steps than are left. */
export const matchesText = (glob: string, value: string, effort = endless): boolean | null =>
  match(glob, value, 'text', effort)

/** True when one of the globs matches. */
export const namesAny = (globs: readonly string[], value: string): boolean =>
  globs.some((glob) => matchesName(glob, value))

/**
 * As `matchesName`, except that `*` and `?` do not cross a `/`, and `**` does. Whoever calls it has made sure with
 * `isPlainPath` that the value means what it says. Null where that takes more steps than are left.
 */
export const matchesPath = (glob: string, value: string, effort = endless): boolean | null =>
  match(glob, value, 'path', effort)

/**
 * As `matchesPath`, as loosely as anybody reads the two: what ends with a slash is the same without, and where `**` stands for whole
 * folders it stands for none as well.
 */
export const matchesLoosely = (glob: string, value: string, effort = endless): boolean | null =>
  match(unslashed(glob), unslashed(value), 'loose', effort)

function unslashed(text: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === '/') end--
  return end === 0 ? text : text.slice(0, end)
}

/** True when a glob names one thing and no other. */
export const isExact = (glob: string): boolean => !/[*?]/.test(glob)

/**
 * True when a value can be compared with a glob: no NUL, no `..` between slashes of either kind, and, where the glob
 * is for file paths, no `.` and no empty segment that a file system would skip.
 */
export function isPlainPath(glob: string, value: string): boolean {
  if (value.includes('\0') || /(?:^|[/\\])\.\.(?:$|[/\\])/.test(value)) return false
  if (!glob.includes('/') || glob.includes('://')) return true
  return !/\\|\/\/|(?:^|\/)\.(?:$|\/)/.test(value)
}

/** Two-pointer matching with one point of return for `*` and one for `**`. */
function match(
  glob: string,
  value: string,
  reading: 'text' | 'path' | 'loose',
  effort: Effort,
): boolean | null {
  const segmented = reading !== 'text'
  let g = 0
  let v = 0
  let star: Return | null = null
  let globstar: Return | null = null
  for (;;) {
    if (--effort.left < 0) return null
    if (glob[g] === '*') {
      const crosses = !segmented || glob[g + 1] === '*'
      const isOptional = reading === 'loose' && crosses && (g === 0 || glob[g - 1] === '/')
      while (glob[g] === '*') g++
      if (crosses && g === glob.length) return true
      if (isOptional && glob[g] === '/') {
        globstar = { glob: g, value: v - 1 } // for one folder or more, if it is not for none
        star = null
        g++
      } else if (crosses) {
        globstar = { glob: g, value: v }
        star = null
      } else star = { glob: g, value: v }
      continue
    }
    if (v === value.length && g === glob.length) return true
    const char = value[v]
    if (char !== undefined && (glob[g] === char || (glob[g] === '?' && !(segmented && char === '/')))) {
      v += glob[g] === '?' ? widthAt(value, v) : 1
      g++
      continue
    }
    if (star !== null && star.value < value.length && value[star.value] !== '/') {
      star.value++
      ;({ glob: g, value: v } = star)
      continue
    }
    if (globstar === null || globstar.value >= value.length) return false
    globstar.value++
    star = null
    ;({ glob: g, value: v } = globstar)
  }
}

/** Code units of the character there. */
const widthAt = (value: string, at: number): number => ((value.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)

interface Return {
  readonly glob: number
  value: number
}
