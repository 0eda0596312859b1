// The configuration of a run's daemon, as whoever changes it leaves it: whole, of another kind, broken, or gone.
import { mkdirSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type InTurn, turns } from '../../src/daemon/turns.ts'
import type { Witness } from '../support/witness.ts'
import { type Around, configuration } from './servers.ts'

/** What no daemon goes over to, by what is wrong with it. */
const ruins = {
  'is cut off': (text: string) => text.slice(0, text.length / 2),
  'is empty': () => '',
  'holds a key that nobody knows': (text: string) => JSON.stringify({ ...JSON.parse(text), nobody: 1 }),
  'names a variable that is unset': (text: string) =>
    text.replace('"servers":{"plain":{', '"servers":{"plain":{"env":{"UNSET":"${env:NOBODY_SET_IT}"},'),
  'is gone': () => null,
  'has a folder in its place': () => 'a folder',
} satisfies Readonly<Record<string, (text: string) => string | null>>

export type Ruin = keyof typeof ruins
export const allRuins = Object.keys(ruins) as Ruin[]

export class ConfigFile {
  /** Whoever writes it, and looks at what comes of that, does so alone */
  readonly inTurn: InTurn = turns()
  readonly #path: string
  readonly #seen: Witness
  readonly #around: Around

  constructor(path: string, seen: Witness, around: Around) {
    this.#path = path
    this.#seen = seen
    this.#around = around
  }

  /** Writes it anew, other than it is by so much; whoever reads meanwhile reads the one or the other. */
  write(change?: Parameters<typeof configuration>[2]): void {
    this.#put(JSON.stringify(configuration(this.#seen, this.#around, change)))
  }

  /** Leaves it as no daemon can read it. */
  ruin(how: Ruin): void {
    const text = ruins[how](JSON.stringify(configuration(this.#seen, this.#around)))
    if (text !== null && how !== 'has a folder in its place') return this.#put(text)
    rmSync(this.#path, { force: true })
    if (text !== null) mkdirSync(this.#path, { mode: 0o700 })
  }

  #put(text: string): void {
    const draft = `${this.#path}.new`
    writeFileSync(draft, text, { mode: 0o600 })
    if (statSync(this.#path, { throwIfNoEntry: false })?.isDirectory() === true) rmdirSync(this.#path)
    renameSync(draft, this.#path)
  }
}
