// One server's entry as a file of its own, for an operator who registers it with a daemon that runs.
import { dirname } from 'node:path'
import { SallyportError } from '../errors.ts'
import { parseDocument } from './document.ts'
import { onNamed } from './named-file.ts'
import { readTrusted } from './read.ts'

/** Reads a mapping; the daemon judges what is in it. `directory` is where its relative paths go from. */
export async function readEntry(
  path: string,
  owners: readonly number[],
): Promise<{ readonly entry: Record<string, unknown>; readonly directory: string }> {
  const named = {
    path,
    access: 'read',
    code: 'ERR_CONFIG_NOT_FOUND',
    mend: 'name the file of an entry',
  } as const
  const file = await onNamed(named, () => readTrusted(path, owners))
  const { value } = parseDocument(file.path, file.text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return { entry: { ...value }, directory: dirname(file.path) }
  throw new SallyportError('ERR_CONFIG_INVALID', `${file.path}: got no mapping, expected a server's entry`, {
    file: file.path,
  })
}
