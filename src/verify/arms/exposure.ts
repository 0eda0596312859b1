// What the arms are given of the host: what no plan mounts, and launchers that pass on more than they should.
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { findInitBinary } from '../../sandbox/init-binary.ts'
import type { Canaries } from '../lab/canaries.ts'
import { callNumber, type Exposure } from '../lab/removal.ts'

/** Writes the launchers beside the program, where they may be executed, too, and so goes with its folder. */
export const exposureOf = async (
  program: string,
  { word, home, folder, state, shared, variables }: Canaries,
): Promise<Exposure> => {
  const launcher = async (name: string, without: readonly string[]): Promise<string> => {
    const path = join(dirname(program), name)
    // See sandbox/probes/before.c.
    const lines = [`#!${program} --before`, await findInitBinary(), word, ...without]
    await writeFile(path, lines.map((line) => `${line}\n`).join(''), { mode: 0o755 })
    return path
  }
  return {
    variables,
    program,
    paths: [home, folder, state, shared, '/etc/shadow', '/sys', '/var'].filter((path) => existsSync(path)),
    launchers: {
      spoilt: await launcher('launcher', []),
      careless: await launcher('careless-launcher', careless),
      sharing: await launcher('sharing-launcher', sharing),
    },
  }
}

const [joinSessionKeyring, recursivelyPrivate] = [1, 0x4000 | 0x40000]

const careless = [
  ...['close_range', 'setsid', 'umask'].map((name) => `${callNumber(name)}`),
  `${callNumber('keyctl')} 0 ${joinSessionKeyring}`,
]

/** Its mounts stay shared with whoever started it, which in there is nobody else: see `share_mounts`. */
const sharing = [`${callNumber('mount')} 3 ${recursivelyPrivate}`]
