// What was seen of a server from outside of its sandbox: paths, programs, addresses, system calls, and the most that it took.
import { normalize } from 'node:path'

/** How a path was used. `change` is whatever writes, creates, renames or removes. */
export type Use = 'read' | 'look' | 'change' | 'execute'

/** One path with what became of it, however often it was used. */
export interface SeenPath {
  /** As it was asked for, absolute and normal in form; of a socket, its address */
  readonly path: string
  /** Where it led, links followed, or null where nobody knows */
  readonly real: string | null
  readonly use: Use
  readonly isFolder: boolean
  /** Number of the errno that it ended with, 0 where it succeeded */
  readonly errno: number
  /** Names of the programs that did */
  readonly programs: ReadonlySet<string>
}

/** An address that somebody dialled or sent to, or the path of a socket, and what came of it. */
export interface SeenAddress {
  readonly address: string
  readonly port: number
  readonly errno: number
}

export interface Observation {
  readonly paths: readonly SeenPath[]
  readonly addresses: readonly SeenAddress[]
  /** Programs that were started, the server's own first */
  readonly started: readonly string[]
  /** Number of a system call -> how often it was made, and how often it was refused */
  readonly calls: ReadonlyMap<number, { readonly count: number; readonly refused: number }>
  /** Most descriptors that one process had */
  readonly descriptors: number
  /** Most processes and threads at once */
  readonly threads: number
  /** Most memory at once: resident pages, bytes, shared ones counted for each process */
  readonly memoryBytes: number
  /** Most that was in one scratch folder, bytes */
  readonly scratchBytes: number
  /** Whether there was more than is kept */
  readonly isCut: boolean
}

/** Different paths, addresses and starts, and bytes of paths, beyond which the rest is not kept: a server can ask for ever */
const mostKept = 20_000
const mostBytes = 16_777_216

/** What the observer says of one use of a path: by which process, as it asked, and where that led; empty where nobody knows. */
interface Told extends Pick<SeenPath, 'use' | 'errno' | 'isFolder'> {
  readonly process: string
  readonly asked: string
  readonly real: string
}

interface Path extends SeenPath {
  readonly programs: Set<string>
}

/** Takes the observer's lines as they come. */
export class Notebook {
  readonly #paths = new Map<string, Path>()
  readonly #addresses = new Map<string, SeenAddress>()
  readonly #started: string[] = []
  readonly #programs = new Map<string, string>()
  readonly #calls = new Map<number, { readonly count: number; readonly refused: number }>()
  readonly #peaks = { descriptors: 0, threads: 0, memoryBytes: 0, scratchBytes: 0 }
  #bytes = 0
  #isCut = false

  take(line: string): void {
    const [what = '', ...fields] = line.split('\t')
    const [first = '', second = '', third = '', fourth = '', fifth = ''] = fields
    switch (what) {
      case 'read':
      case 'look':
      case 'change':
      case 'execute':
        return this.#path({
          use: what,
          process: first,
          errno: Number(second),
          asked: unescaped(third),
          real: unescaped(fourth),
          isFolder: fifth === 'folder',
        })
      case 'dial':
        return this.#address({ address: third, port: Number(fourth), errno: Number(second) })
      case 'socket':
        return this.#path({
          use: 'read',
          process: first,
          errno: Number(second),
          asked: unescaped(third),
          real: '',
          isFolder: false,
        })
      case 'started':
        this.#programs.set(first, unescaped(second))
        if (this.#started.length < mostKept) this.#started.push(unescaped(second))
        else this.#isCut = true
        return
      case 'call':
        return void this.#calls.set(Number(first), { count: Number(second), refused: Number(third) })
      case 'descriptors':
        this.#peaks.descriptors = Number(first)
        return
      case 'peaks':
        this.#peaks.threads = Number(first)
        this.#peaks.memoryBytes = Number(second)
        this.#peaks.scratchBytes = Number(third)
        return
      default:
        this.#isCut = true
    }
  }

  observation(): Observation {
    return {
      paths: [...this.#paths.values()],
      addresses: [...this.#addresses.values()],
      started: this.#started,
      calls: this.#calls,
      ...this.#peaks,
      isCut: this.#isCut,
    }
  }

  #path({ use, process, errno, asked, real, isFolder }: Told): void {
    if (!asked.startsWith('/')) return
    const path = tidy(asked)
    const key = `${use} ${errno} ${path}`
    const known = this.#paths.get(key)
    const program = this.#programs.get(process)
    if (known !== undefined) return void (program !== undefined && known.programs.add(program))
    this.#bytes += path.length + real.length
    if (this.#paths.size >= mostKept || this.#bytes > mostBytes) return void (this.#isCut = true)
    const programs = new Set(program === undefined ? [] : [program])
    this.#paths.set(key, { path, real: real === '' ? null : tidy(real), use, isFolder, errno, programs })
  }

  #address(seen: SeenAddress): void {
    const key = `${seen.address} ${seen.port} ${seen.errno}`
    if (this.#addresses.size < mostKept) this.#addresses.set(key, seen)
    else this.#isCut = true
  }
}

// By its text alone: where a link stands before `..`, the kernel goes elsewhere, and `real` says where.
const tidy = (path: string): string => normalize(path).replace(/(.)\/+$/, '$1')

const unescaped = (text: string): string =>
  Buffer.from(
    text.replace(/\\x([0-9a-f]{2})/g, (_, byte: string) => String.fromCharCode(Number.parseInt(byte, 16))),
    'latin1',
  ).toString('utf8')
