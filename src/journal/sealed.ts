// JSON beside the journal that only a holder of its key can have written: one object, its MAC the last member.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { parseJson } from '../lib/parse-json.ts'

/** What a file is: a MAC of one kind is no MAC of another, nor of a record. */
export type SealedKind = 'snapshot' | 'head' | 'owed' | 'uncut'

const version = 1
const ending = /,"mac":"([0-9a-f]{64})"\}\n$/

/** `members` is the text of an object's members, without its braces. */
export function seal(kind: SealedKind, members: string, key: Uint8Array): string {
  const covered = `{"version":${version},${members}`
  return `${covered},"mac":"${macOf(kind, covered, key)}"}\n`
}

/** What was sealed; its MAC vouches for the shape. Throws what is wrong with the text, as a sentence about it. */
export function unseal(kind: SealedKind, text: string, key: Uint8Array): object {
  const end = ending.exec(text)
  if (end === null) throw new Error(`it does not end as a ${kind} does`)
  const covered = text.slice(0, end.index)
  if (!timingSafeEqual(Buffer.from(macOf(kind, covered, key)), Buffer.from(end[1] ?? '')))
    throw new Error('it was not written with this journal’s key')
  const { version: found, ...sealed } = parseJson(`${covered}}`) as { readonly version: number }
  if (found !== version) throw new Error(`its version is ${found}, expected ${version}`)
  return sealed
}

const macOf = (kind: SealedKind, covered: string, key: Uint8Array): string =>
  createHmac('sha256', key).update(`sallyport ${kind}\n`).update(covered).digest('hex')
