// How two absolute, normal paths lie to one another; the mount rules are made of this one question.
import { isAbsolute, normalize } from 'node:path'

/** `at`: the same; `above`: the first holds the second; `inside`: the first lies in the second; `apart`: neither. */
export type Overlap = 'at' | 'above' | 'inside' | 'apart'

/** Returns how `path` lies to `other`. Both must be normal, see `isNormal`. */
export const overlapOf = (path: string, other: string): Overlap => {
  if (path === other) return 'at'
  if (other.startsWith(path === '/' ? '/' : `${path}/`)) return 'above'
  if (path.startsWith(other === '/' ? '/' : `${other}/`)) return 'inside'
  return 'apart'
}

/** Says whether `path` is `folder` or lies in it. */
export const isWithin = (path: string, folder: string): boolean => {
  const overlap = overlapOf(path, folder)
  return overlap === 'at' || overlap === 'inside'
}

/** Says whether a path is absolute and has no `.`, `..`, doubled or trailing slash, control character or NUL. */
export const isNormal = (path: string): boolean =>
  isAbsolute(path) &&
  normalize(path) === path &&
  (path === '/' || !path.endsWith('/')) &&
  !/[\0-\x1f\x7f]/.test(path)
