// Names in a folder are bytes. Read as text, whatever is not UTF-8 becomes U+FFFD, and is then another name, perhaps of another file.
import { isUtf8 } from 'node:buffer'
import { readdirSync, readlinkSync } from 'node:fs'

/** Whether a text may stand for other bytes than its own. */
export const isDoubtful = (text: string): boolean => text.includes('\uFFFD')

/** Of the names in a folder the first that is not UTF-8, its other bytes shown as \xNN; null where all are. */
export const inexactName = (folder: string): string | null => {
  const found = readdirSync(folder, { encoding: 'buffer' }).find((name) => !isUtf8(name))
  return found === undefined ? null : shown(found)
}

/** Whether what a link says is UTF-8. */
export const isExactLink = (path: string): boolean => isUtf8(readlinkSync(path, { encoding: 'buffer' }))

const shown = (name: Buffer): string =>
  name
    .toString('latin1')
    .replace(/[^ -~]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)
