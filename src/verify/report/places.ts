// Where a profile's files decide what a probe guards, for reports that point at lines.
import type { ProfileSettings } from '../../schema/settings.ts'
import { own } from '../../lib/own.ts'
import type { Place, Reported } from './format.ts'

/** Looks up a key of `decidedAt`; `files` has the path of each file by its base name, and `server` the entry of the server that ran. */
export const placesOf =
  (
    { path, decidedAt }: ProfileSettings,
    files: ReadonlyMap<string, string>,
    server: Place | null = null,
  ): Reported['placeOf'] =>
  (key) => {
    if (key === 'server' && server !== null) return server
    const [, name = '', line = ''] = /^(.*):(\d+)$/.exec(own(decidedAt, key) ?? '') ?? []
    const file = files.get(name)
    return file === undefined ? { path, line: 1 } : { path: file, line: Number(line) }
  }
