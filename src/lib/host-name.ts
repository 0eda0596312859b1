// The one spelling of a host's name that policy, resolver, SNI, dialling and records use; whatever has two readings has none.
import { domainToASCII, domainToUnicode } from 'node:url'
import { remembered } from './remembered.ts'

const maxName = 253
const rememberedNames = 256
const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/
const lastLabel = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const numeric = /^([0-9]+|0x[0-9a-f]*)$/

/**
 * Returns the canonical name (lower case, ASCII, without a dot at its end), or null where the text is not one host name.
 *
 * - One dot at the end is dropped, upper case of ASCII is lowered; nothing else is repaired.
 * - A name whose last label is a number, decimal or hexadecimal, is an address to some reader, and is refused.
 * - Letters beyond ASCII become A-labels where they come back unchanged; an A-label that does not decode is refused.
 */
export function canonicalHost(text: string): string | null {
  return known(text)
}

const known = remembered(canonical, rememberedNames)

function canonical(text: string): string | null {
  if (text.length > 4 * maxName) return null
  const lower = text.replace(/[A-Z]+/g, (it) => it.toLowerCase()) // toLowerCase would make a k of the Kelvin sign
  const bare = lower.endsWith('.') ? lower.slice(0, -1) : lower
  const name = isAscii(bare) ? bare : toALabels(bare)
  if (name === null || name.length > maxName) return null
  const labels = name.split('.')
  const last = labels.at(-1) ?? ''
  if (!labels.every((it) => label.test(it)) || !lastLabel.test(last) || numeric.test(last)) return null
  return labels.some((it) => it.startsWith('xn--')) && !decodes(name) ? null : name
}

const isAscii = (text: string): boolean => /^[\x21-\x7e]*$/.test(text)

function toALabels(text: string): string | null {
  const name = domainToASCII(text)
  return name !== '' && domainToUnicode(name) === text ? name : null
}

function decodes(name: string): boolean {
  const unicode = domainToUnicode(name)
  return unicode !== '' && !/(^|\.)xn--/.test(unicode) && domainToASCII(unicode) === name
}
