// Inputs that once were of interest: one file for each target, one input a line, every byte but printable ASCII as \xNN.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const pathOf = (target: string): string => fileURLToPath(new URL(`./corpus/${target}.txt`, import.meta.url))

/** The inputs of a target, in the order of their file. */
export function readCorpus(target: string): readonly Buffer[] {
  if (!existsSync(pathOf(target))) return []
  return readFileSync(pathOf(target), 'latin1').split('\n').slice(0, -1).map(unescaped)
}

/** Replaces the inputs of a target; shorter ones come first. */
export function writeCorpus(target: string, inputs: readonly Uint8Array[]): void {
  const lines = [...new Set(inputs.map(escaped))].sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
  writeFileSync(pathOf(target), lines.map((line) => `${line}\n`).join(''))
}

/** One line of a corpus. */
export const escaped = (bytes: Uint8Array): string =>
  Buffer.from(bytes)
    .toString('latin1')
    .replaceAll(/[^ -[\]-~]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)

const unescaped = (line: string): Buffer =>
  Buffer.from(
    line.replaceAll(/\\x([0-9a-f]{2})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    ),
    'latin1',
  )
