// Symbolic links that are part of the machine, such as /home on systems that keep homes elsewhere: as good as the folders that they stand for.
import { lstat, readlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { followTrusted } from './trusted-path.ts'

const hopLimit = 40

/**
 * Where an absolute path leads by the links on its way, or at its end, that root alone can have put there: root's own, each in a
 * folder that nobody else may write, below folders of which nobody else can replace one. From any other link on, and from what is
 * not there or can't be looked at, the path stays as it is, for whoever judges it next.
 */
export const throughRootLinks = async (path: string): Promise<string> => {
  let place = '/'
  let rest = namesOf(path)
  for (let hops = 0; ;) {
    const [name, ...further] = rest
    if (name === undefined) return place
    const next = join(place, name)
    const found = await lstat(next).catch(() => null)
    if (found?.isSymbolicLink() !== true) {
      if (found === null) return join(next, ...further)
      ;[place, rest] = [next, further]
      continue
    }
    if (found.uid !== 0 || !(await isRootsAlone(dirname(next))) || ++hops > hopLimit)
      return join(next, ...further)
    const text = await readlink(next)
    rest = [...namesOf(text), ...further]
    if (text.startsWith('/')) place = '/'
  }
}

const namesOf = (path: string): readonly string[] =>
  path.split('/').filter((name) => name !== '' && name !== '.')

// In a sticky folder, which others may write, a name of root's may be their hard link to a link of root's elsewhere.
const isRootsAlone = async (folder: string): Promise<boolean> => {
  const judged = await followTrusted(folder, [])
  return judged.isTrusted && ((judged.found.mode & 0o1000n) === 0n || (judged.found.mode & 0o022n) === 0n)
}
