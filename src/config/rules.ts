// Rules as files state them: each with its place, and none that no call could match, which would deny nothing without a word.
import { basename } from 'node:path'
import { isExact, matchesName } from '../lib/glob.ts'
import { foldKey } from '../lib/key-folding.ts'
import { shown } from '../lib/look-alikes.ts'
import { nearest } from '../lib/nearest.ts'
import { trimmed } from '../lib/trailing.ts'
import { governedMethods } from '../schema/governed-methods.ts'
import type { Rule } from '../schema/settings.ts'
import type { Config } from '../schema/types.gen.ts'
import type { Document } from './document.ts'
import { issue, type Issue } from './refusal.ts'

/** A file that states rules. */
interface Stating {
  readonly document: Document
  readonly config: Pick<Config, 'rules'>
}

/** The rules of a file, each with the place where people find it. */
export function rulesOf({ document, config }: Stating): readonly Rule[] {
  return config.rules.map((rule, index) => ({
    ...rule,
    origin: `${basename(document.path)} rules[${index}]`,
  }))
}

/** What is wrong with rules: methods that no rule decides, and globs that no address, and nothing that is seen, is held to match. */
export function checkRules(stating: Stating): readonly Issue[] {
  return [...checkMethods(stating), ...checkSeen(stating), ...checkAddresses(stating)]
}

function checkMethods({ document, config }: Stating): readonly Issue[] {
  return config.rules.flatMap(({ permission }, index) => {
    const method = permission.split(':').at(-1) ?? ''
    if (!method.includes('/') || governedMethods.some((known) => matchesName(method, known))) return []
    const expected = `mcp:<server>:<tool>, or one of the methods that rules decide: ${governedMethods.join(', ')}`
    const mend = mendOf(method)
    const said = mend === null ? { expected } : { expected, mend }
    return [issue('ERR_CONFIG_INVALID', document, ['rules', index, 'permission'], said)]
  })
}

/** A value is taken for what is left of it without what is not shown, and without blanks at its ends: the glob is that, or denies little. */
function checkSeen({ document, config }: Stating): readonly Issue[] {
  return config.rules.flatMap(({ where, action }, index) =>
    Object.entries(where).flatMap(([pointer, glob]) => {
      if (action === 'allow' && isExact(glob)) return [] // just that text is allowed
      const seen = trimmed(shown(glob))
      if (seen === glob) return []
      const expected = 'a glob without blanks at its ends, and without characters that are not shown'
      const mend = seen === '' ? 'write what is meant' : `write ${seen}`
      return [issue('ERR_CONFIG_INVALID', document, ['rules', index, 'where', pointer], { expected, mend })]
    }),
  )
}

function checkAddresses({ document, config }: Stating): readonly Issue[] {
  return config.rules.flatMap(({ where }, index) =>
    Object.entries(where).flatMap(([pointer, glob]) => {
      const normal = normalOf(glob)
      const leadsBack = /(?:^|\/)\.\.(?:\/|$)/.test(pathIn(normal))
      const isOnUsual = isOnUsualPort(glob)
      if (normal === glob && !leadsBack && !isOnUsual) return []
      const what = glob.includes('://') || address.test(glob) ? 'an address' : 'a path'
      const expected = `${what} as those who resolve it write it`
      const mend = leadsBack
        ? 'write where it leads: nothing with .. in it is held to match'
        : isOnUsual
          ? 'write a rule for each scheme: the port that one has anyway is not written'
          : writeInstead(glob, normal)
      const said = { expected, mend }
      return [issue('ERR_CONFIG_INVALID', document, ['rules', index, 'where', pointer], said)]
    }),
  )
}

/** Of a scheme that may be several, with a port that one of them has anyway, which a resolver leaves out there. */
function isOnUsualPort(glob: string): boolean {
  const [, scheme = '', port = ''] = /^([^:/]*):\/\/[^/]*?:0*(\d+)(?:\/|$)/.exec(glob) ?? []
  return (
    /[*?]/.test(scheme) &&
    Object.entries(usualPorts).some(([one, its]) => its === port && matchesName(scheme.toLowerCase(), one))
  )
}

/** A part of a name that is written otherwise than it is read, and has a wildcard: what it stands for is not written so. */
const isHalfNamed = (glob: string): boolean =>
  (/^[^:]*:\/\/([^/]*)/.exec(glob)?.[1] ?? '')
    .split('.')
    .some((label) => /[*?]/.test(label) && /[^\0-\x7f]/.test(label))

function writeInstead(glob: string, normal: string): string {
  if (isHalfNamed(glob)) return 'write * for all of that part of the name, or the whole of it'
  const isAddress = normal.includes('://')
  const says = isAddress ? (/^[^:]*:\/\/(?!\/$)[^=&#]*(?:\/|$)/.test(normal) ? normal : '') : normal
  if (/^[./]*\**$/.test(says) && !glob.startsWith('/'))
    return isAddress ? 'write a host, and a slash behind it' : 'write the path of what is meant'
  const isWholeHost = isAddress && normal.endsWith('/') && !glob.endsWith('/')
  return isWholeHost ? `write ${normal}, or ${normal}** for all that is there` : `write ${normal}`
}

/** Of these an address has an authority, however it is written (https://url.spec.whatwg.org/#special-scheme) */
const special = /^(?:file|ftp|https?|wss?)$/i

const address = /^([a-z*?][a-z\d+.*?-]*):(\S.*)$/is

/**
 * A glob for addresses with scheme, host and port as `new URL` gives them, one for paths with no step that leads nowhere; every
 * other text is what it is.
 */
function normalOf(glob: string): string {
  const [, name = '', written = ''] = address.exec(glob) ?? []
  const isSpecial = special.test(name)
  const isMaybe = /[*?]/.test(name) && written.startsWith('//')
  const rest = isSpecial || isMaybe ? slashed(written) : written
  if (!isSpecial && !rest.startsWith('//')) return pathOf(glob)
  const scheme = name.toLowerCase()
  if (rest.startsWith('**')) return `${scheme}:${rest}`
  if (!rest.startsWith('//'))
    return normalOf(`${scheme}://${scheme === 'file' ? '/' : ''}${rest.replace(/^\/+/, '')}`)
  const [, authority = '', path = ''] = /^\/\/([^/]*)(.*)$/s.exec(rest) ?? []
  const steps = resolvedOf(
    scheme === 'file' ? path.replace(/^\/([a-z])\|(?=\/|$)/i, '/$1:') : path,
    scheme === 'file',
  )
  const host = authorityOf(scheme, authority)
  if (!isSpecial || path !== '' || host.includes('**')) return `${scheme}://${host}${steps}`
  return host === '*' ? `${scheme}://**` : `${scheme}://${host}/` // a resolver writes no host without a slash behind it
}

/** To a resolver of these schemes the one is the other, as far as the path goes. */
function slashed(text: string): string {
  const end = text.search(/#|\?[^/?]*=/)
  const path = end < 0 ? text : text.slice(0, end)
  return path.replaceAll('\\', '/') + text.slice(path.length)
}

const usualPorts: Readonly<Record<string, string>> = {
  ftp: '21',
  http: '80',
  https: '443',
  ws: '80',
  wss: '443',
}

/** Host and port as a resolver gives them, in which wildcards stand as they stood; what is no host is what it is. */
function authorityOf(scheme: string, authority: string): string {
  const [, user = '', name = '', port = ''] = /^(.*@)?(\[.*\]|[^:]*)(?::(.*))?$/s.exec(authority) ?? []
  const mark = markBeside(name)
  const wildcards: string[] = []
  const plain = name.replaceAll(/\*+|\?/g, (wildcard) => `${mark}${wildcards.push(wildcard)}${mark}`)
  const isResolved = special.test(scheme) || /[*?]/.test(scheme) // of other schemes a resolver leaves it, and readers make it small
  const found = isResolved ? URL.parse(`https://${plain}/`)?.hostname : undefined
  const host = scheme === 'file' && name === 'localhost' ? '' : (found ?? plain.toLowerCase())
  const tokens = new RegExp(`${mark}(\\d+)${mark}`, 'g')
  const resolved = host.replaceAll(tokens, (token, n: string) => wildcards[Number(n) - 1] ?? token)
  const number = port.replace(/^0+(?=\d)/, '')
  return `${user}${resolved}${number === '' || number === usualPorts[scheme] ? '' : `:${number}`}`
}

/** Letters that a resolver leaves as they are, and of which none in the name becomes the like. */
function markBeside(name: string): string {
  const fold = foldKey(name, Infinity)
  for (let length = 2; ; length += 1) {
    const taken = new Set<string>()
    for (let at = 0; at + length <= fold.length; at += 1) taken.add(fold.slice(at, at + length))
    const free = marks(length).find((mark) => !taken.has(mark))
    if (free !== undefined) return free
  }
}

/** So many letters before a z, as numbers are written: enough of them that no name has them all. */
const marks = (length: number): readonly string[] =>
  Array.from(
    { length: 20 ** (length - 1) },
    (_, number) =>
      `${number
        .toString(20)
        .padStart(length - 1, '0')
        .replaceAll(/./g, (digit) => letters[parseInt(digit, 20)] ?? '')}z`,
  )

const letters = 'qxjkvwybfpghmcudlnrs'

/** What has a slash is held against paths, which have no empty steps, and none that stay where they are or lead back. */
function pathOf(glob: string): string {
  if (!glob.includes('/') || glob.includes('://')) return glob
  const path = steppedOf(glob, true).replace(/^\.\//, '')
  return path === '' ? '/' : path.normalize('NFC')
}

/** Where a `?` begins a query, and is no wildcard: what follows is a name and its value. */
const query = /\?[^/?]*=/

/** The path of an address, or of a path; empty for a text that only holds an address. */
function pathIn(glob: string): string {
  if (!address.test(glob)) return glob.includes('://') ? '' : glob
  const [path = ''] = glob.replace(/^[^:]*:(?:\/\/[^/]*)?/, '').split('#')
  return path.split(query)[0] ?? ''
}

/** As a resolver writes the path of an address: nothing leads above its root, and who is led to a folder finds a slash at its end. */
function resolvedOf(path: string, isFile: boolean): string {
  const end = path.search(/#|\?[^/?]*=/)
  const [steps, rest] = end < 0 ? [path, ''] : [path.slice(0, end), path.slice(end)]
  const dotted = steps.replaceAll(/(?<=\/)(?:\.|%2e){1,2}(?=\/|$)/gi, (step) => step.replaceAll(/%2e/gi, '.'))
  const plain = steppedOf(dotted, isFile).replace(/^(?:\/\.\.)+(?=\/|$)/, '')
  return `${/\/\.{1,2}$/.test(dotted) ? plain.replace(/\/?$/, '/') : plain}${rest}`
}

function steppedOf(path: string, isFile: boolean): string {
  const [first = '', ...steps] = (isFile ? path.replaceAll(/\/{2,}/g, '/') : path).split('/')
  const left: string[] = []
  for (const step of steps) {
    const before = left.at(-1) ?? ''
    // Where a wildcard leads nobody knows, nor so where `..` behind it does.
    if (step === '..' && before !== '' && before !== '..' && !before.startsWith('*')) left.pop()
    else if (step !== '.') left.push(step)
  }
  return [first, ...left].join('/')
}

function mendOf(method: string): string | null {
  if (matchesName(method, 'tools/call')) return 'name the tool, or * for all of them'
  if (matchesName(method, 'subscriptions/listen'))
    return 'write resources/subscribe, or tasks/get, as which each thing in it is decided'
  const meant = nearest(method, governedMethods)
  return meant === null ? null : `did you mean ${meant}?`
}
