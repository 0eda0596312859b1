// From how a decision names its place (`sallyport.yaml rules[2]`) to the file and the line of it.
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Step } from '../schema/problem.ts'
import type { Settings } from '../schema/settings.ts'
import { type Document, parseDocument } from './document.ts'

/** A line of a file. */
export interface Place {
  readonly path: string
  readonly line: number
}

type Sources = Pick<Settings, 'sources'>

/** Returns where it stands, or null where no file of the settings has it, such as a rule of the command line. */
export async function placeOfOrigin(origin: string, { sources }: Sources): Promise<Place | null> {
  const [, file, steps = ''] = /^(\S+) (\S+)$/.exec(origin) ?? []
  const source = sources.find(({ path }) => basename(path) === file)
  return source === undefined ? null : placeIn(await documentAt(source.path), stepsOf(steps))
}

/** Returns where a server's entry stands, or of a key in it; null where no file of the settings has such a server. */
export async function placeOfServer(
  server: string,
  { sources }: Sources,
  key: readonly Step[] = [],
): Promise<Place | null> {
  for (const { path } of sources) {
    const document = await documentAt(path)
    const { servers } = { ...(document.value as object) } as { servers?: object }
    if (Object.hasOwn(servers ?? {}, server)) return placeIn(document, ['servers', server, ...key])
  }
  return null
}

const documentAt = async (path: string): Promise<Document> =>
  parseDocument(path, await readFile(path, 'utf8'))

const placeIn = (document: Document, steps: readonly Step[]): Place | null => {
  const found = document.locate(steps, 'key')
  return found === null ? null : { path: document.path, line: found.line }
}

/** `servers.my.files.tools.deny[1]` -> its steps; names of servers may have dots, so they end where a known key follows. */
const stepsOf = (text: string): readonly Step[] => {
  const [, server, key = ''] = /^servers\.(.+)\.(tools\.(?:deny|allow)(?:\[\d+\])?|trust)$/.exec(text) ?? []
  const plain = (part: string): Step[] =>
    part.split(/[.[\]]+/).flatMap((step) => (step === '' ? [] : [/^\d+$/.test(step) ? Number(step) : step]))
  return server === undefined ? plain(text) : ['servers', server, ...plain(key)]
}
