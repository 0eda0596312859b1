// YAML 1.2 or JSON text, parsed once, with the line and column of every key and value; the only door to yaml.
import {
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  visit,
  Document as YamlDocument,
} from 'yaml'
import { SallyportError } from '../errors.ts'
import type { Step } from '../schema/problem.ts'

export interface Position {
  readonly line: number
  readonly column: number
}

/** A parsed file that can still say where each of its values stands. */
export interface Document {
  readonly path: string
  readonly value: unknown
  /** Where the value at these steps stands, or its key, or the nearest thing above it that there is; null without a text */
  locate(at: readonly Step[], part: 'key' | 'value'): Position | null
}

/** Aliases that one document may expand to; more is an attack or a mistake. */
const maxAliasCount = 64

/**
 * Parses one document. Duplicate keys, keys that are not strings, explicit tags, merge keys, directives of another
 * version, several documents in one file, control characters, ends of lines without a line feed and alias bombs are
 * refused (ERR_CONFIG_SYNTAX).
 */
export function parseDocument(path: string, text: string): Document {
  const lines = new LineCounter()
  const fail = (offset: number, what: string, cause?: unknown): SallyportError => {
    const { line, col } = lines.linePos(offset)
    return new SallyportError(
      'ERR_CONFIG_SYNTAX',
      `${path}:${line}:${col}: ${what}`,
      { file: path, line, column: col },
      { cause },
    )
  }
  const document = guarded(
    () => parseOne(text, lines, fail),
    (error) => fail(0, tooDeep, error),
  )
  refuseCleverness(document, fail)
  const value: unknown = guarded(
    () => document.toJS({ maxAliasCount }) as unknown,
    (error) => fail(0, `the file’s aliases expand to too much, at most ${maxAliasCount} are read`, error),
  )
  return { path, value, locate: (at, part) => locate(document, lines, at, part) }
}

/** Wraps a value that never was a file, such as what a command line says. */
export function inMemory(path: string, value: unknown): Document {
  return { path, value, locate: () => null }
}

/**
 * Writes a value as YAML, with a comment behind each value for which there is one, or before it in a list. What nobody sees in a
 * text stands there as an escape.
 */
export function formatDocument(value: unknown, commentAt: (at: readonly Step[]) => string | null): string {
  const document = new YamlDocument(value)
  const annotate = (node: unknown, at: readonly Step[]): void => {
    const comment = commentAt(at)
    const isEmpty = isCollection(node) && node.items.length === 0
    if (comment !== null && (isScalar(node) || isEmpty)) node.comment = ` ${comment}`
    else if (comment !== null && isMap(node) && typeof at.at(-1) === 'number')
      node.commentBefore = ` ${comment}`
    if (isMap(node))
      for (const { key, value: inner } of node.items)
        annotate(inner, [...at, isScalar(key) ? String(key.value) : ''])
    if (isSeq(node)) for (const [index, inner] of node.items.entries()) annotate(inner, [...at, index])
  }
  annotate(document.contents, [])
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && node.value.search(unseen) >= 0) node.type = 'QUOTE_DOUBLE'
    },
  })
  // The printer gives an empty list or mapping with a comment three lines.
  const text = document.toString({ lineWidth: 0 }).replaceAll(/:\n\s+(\[\]|\{\})\n\s+(# .*)/g, ': $1 $2')
  return text.replaceAll(unseen, escaped)
}

/** Characters that are not shown, or change how others are; all but those that lay a text out */
const unseen = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{DI}]/gu

/** As YAML has it within double quotes. */
function escaped(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase()
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`
}

type Fail = (offset: number, what: string, cause?: unknown) => SallyportError

/** A recursive parser throws where nesting or aliases exhaust it; what we throw ourselves passes. */
function guarded<T>(act: () => T, translate: (error: unknown) => SallyportError): T {
  try {
    return act()
  } catch (error) {
    throw error instanceof SallyportError ? error : translate(error)
  }
}

function parseOne(text: string, lines: LineCounter, fail: Fail): YamlDocument {
  const documents = parseAllDocuments(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    uniqueKeys: true,
    stringKeys: true,
    merge: false,
    prettyErrors: false,
    lineCounter: lines,
  })
  const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.exec(text)
  if (control !== null) throw fail(control.index, 'got a control character, expected text')
  // YAML and JSON have it for the end of a line, the library for a letter.
  const bare = /\r(?!\n)/.exec(text)
  if (bare !== null)
    throw fail(bare.index, 'got a carriage return by itself, expected a line feed at the end of a line')
  if (!Array.isArray(documents) || documents.length === 0)
    throw fail(0, 'got an empty file, expected a mapping')
  const [document, second] = documents
  if (document === undefined) throw fail(0, 'got an empty file, expected a mapping')
  const [flaw] = [...document.errors, ...document.warnings]
  if (flaw !== undefined) throw fail(flaw.pos[0], flaws[flaw.code] ?? oneLine(flaw.message))
  if (second !== undefined)
    throw fail(second.range[0], 'got a second document, expected one; remove the `---`')
  return document
}

const tooDeep = 'the file is nested too deeply to be read'

/** Our words for what the parser finds most; its own for the rest. */
const flaws: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'got a key a second time, expected each key once; remove one of the two',
  NON_STRING_KEY: 'got a key that is no string, expected a string; quote it, or write a list',
  TAG_RESOLVE_FAILED: 'got a tag, expected none; remove it',
  RESOURCE_EXHAUSTION: tooDeep,
}

/** What is legal YAML and makes a file mean something else than it seems to. */
function refuseCleverness(document: YamlDocument, fail: Fail): void {
  if (document.directives?.yaml.explicit === true && document.directives.yaml.version !== '1.2')
    throw fail(0, `got %YAML ${document.directives.yaml.version}, expected YAML 1.2; remove the directive`)
  visit(document, {
    Node: (_, node) => {
      const start = node.range?.[0] ?? 0
      if (!isAlias(node) && node.tag !== undefined)
        throw fail(start, `got the tag ${node.tag}, expected none; remove it`)
    },
    Pair: (_, { key }) => {
      if (isScalar(key) && key.value === '<<')
        throw fail(key.range?.[0] ?? 0, 'got a merge key (<<), expected none; write the keys out')
    },
  })
}

const oneLine = (message: string): string => message.replaceAll(/\s+/g, ' ')

function locate(
  document: YamlDocument,
  lines: LineCounter,
  at: readonly Step[],
  part: 'key' | 'value',
): Position | null {
  let node: unknown = document.contents
  let offset = offsetOf(node) ?? 0
  for (const [index, step] of at.entries()) {
    if (isAlias(node)) node = node.resolve(document)
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && key.value === String(step))
      if (pair === undefined) break
      const wantsKey = part === 'key' && index === at.length - 1
      offset = (wantsKey ? undefined : offsetOf(pair.value)) ?? offsetOf(pair.key) ?? offset
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(step)]
      if (node === undefined) break
      offset = offsetOf(node) ?? offset
    } else break
  }
  const { line, col } = lines.linePos(offset)
  return { line, column: col }
}

function offsetOf(node: unknown): number | undefined {
  if (typeof node !== 'object' || node === null || !('range' in node) || !Array.isArray(node.range))
    return undefined
  const start: unknown = node.range[0]
  return typeof start === 'number' ? start : undefined
}
