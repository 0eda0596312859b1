// JSON that takes the longest to read for its length: 8 MB at most, and just below what is refused for its many parts.
import { mostParts } from '../../src/lib/json-scan.ts'

const many = mostParts - 2000
const bytes = 8_000_000
const pad = 'p'.repeat(40)
const list = (count: number, item: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => item(n)).join(',')
/** Unordered */
const mixed = (n: number): string => ((n * 7919) % many).toString(36)

/** A value of each shape. */
export const shapes: Readonly<Record<string, () => string>> = {
  keys: () => `{${list(many / 2, (n) => `"key${mixed(n)}":${n % 10}`)}}`,
  'long keys': () => `{${list(many / 2, (n) => `"${pad}${mixed(n)}":0`)}}`,
  'keys with escapes': () => `{${list(many / 2, (n) => `"é\\u00e9${mixed(n)}":0`)}}`,
  numbers: () => `[${list(many, (n) => `${n % 10}`)}]`,
  'numbers of 16 digits': () => `[${list(many, (n) => `${10 ** 15 + n}`)}]`,
  objects: () => `[${list(many / 5, (n) => `{"a":${n % 10},"b":"x"}`)}]`,
  'strings with escapes': () => `[${list(many, (n) => `"x\\u0041_${n}"`)}]`,
  'almost secrets': () => `[${list(many * 0.8, (n) => `"sk-u\\u0041aaaaaaaaaaaaaaaaaaaa${n}"`)}]`,
  'one string of escapes': () => `"${'\\n\\"'.repeat(bytes / 4)}"`,
  'one string of \\u': () => `"${'\\u00e9'.repeat(Math.floor(bytes / 6))}"`,
  'one plain string': () => `"${'abcdefgh'.repeat(bytes / 8)}"`,
  'one string beyond ASCII': () => `"${'aé漢🙂'.repeat(bytes / 10)}"`,
  'deep lists': () => `[${list(2700, () => '['.repeat(90) + ']'.repeat(90))}]`,
  'empty objects': () => `[${list(many, () => '{}')}]`,
}
