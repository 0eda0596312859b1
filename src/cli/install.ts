// `sallyport install docker:IMAGE`: fetches an image before any server needs it, and says how to pin it.
import type { Command } from 'commander'
import { thisHost } from '../config/host.ts'
import { SallyportError } from '../errors.ts'
import type { PullProgress } from '../sandbox/docker/answers.ts'
import { findEndpoint } from '../sandbox/docker/endpoint.ts'
import { openEngine } from '../sandbox/docker/engine.ts'
import { pinnedName } from '../sandbox/docker/image.ts'
import { loginFor } from '../sandbox/docker/login.ts'
import { printJson, visible } from './output.ts'

/** What was installed, as `--json` prints it. */
interface Installed {
  readonly image: string
  /** What to write as `image`, so that it is this one for ever */
  readonly pinned: string
  readonly id: string
}

/** Adds the verb to a program. Failures are thrown. */
export function registerInstall(program: Command): void {
  program
    .command('install')
    .description('fetch an image for the docker driver; launches never pull')
    .argument('<docker:image>', 'the image, e.g. docker:ghcr.io/me/server:1.2 or docker:NAME@sha256:…')
    .option('--json', 'print JSON')
    .action(async (what: string, { json }: { readonly json?: boolean }) => {
      const installed = await install(imageIn(what))
      if (json === true) printJson(installed)
      else process.stdout.write(`image: ${visible(installed.pinned)}\n`)
    })
}

async function install(image: string): Promise<Installed> {
  const { env } = thisHost()
  using engine = await openEngine(findEndpoint(env), env)
  const interrupted = new AbortController()
  const interrupt = (): void => interrupted.abort(new SallyportError('ERR_CALL_CANCELLED', 'interrupted'))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
  const progress = new Progress(process.stderr.isTTY)
  try {
    const login = await loginFor(image, env)
    await engine.pull(image, (line) => progress.hear(line), { signal: interrupted.signal, login })
  } finally {
    progress.end()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt)
  }
  const facts = await engine.image(image)
  if (facts === null)
    throw new SallyportError(
      'ERR_IMAGE_MISSING',
      `the engine pulled ${image} and has no image of that name; try again`,
      { image },
    )
  return { image, pinned: pinnedName(facts, image), id: facts.Id }
}

// What it is given is the name of an image and nothing else: not an archive, a folder or an address.
function imageIn(what: string): string {
  const [, image] =
    /^docker:((?:[A-Za-z0-9][\w.-]*(?::\d+)?\/)?[a-z0-9][\w./-]*(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?)$/.exec(
      what,
    ) ?? []
  if (image !== undefined) return image
  throw new SallyportError(
    'ERR_USAGE',
    `install: got ${JSON.stringify(what.slice(0, 200))}, expected docker: and an image, as NAME, NAME:TAG or NAME@sha256:DIGEST`,
  )
}

/** One line on stderr: layers done and bytes, rewritten on a terminal, and elsewhere said again when a layer is done. */
class Progress {
  readonly #isTerminal: boolean
  readonly #layers = new Map<
    string,
    { readonly isDone: boolean; readonly current: number; readonly total: number }
  >()
  #said = ''

  constructor(isTerminal: boolean) {
    this.#isTerminal = isTerminal
  }

  hear({ id, status = '', progressDetail }: PullProgress): void {
    const layer = id === undefined ? undefined : this.#layers.get(id)
    if (id === undefined || (layer === undefined && !/^(Pulling fs layer|Already exists)/.test(status)))
      return
    const { current = layer?.current ?? 0, total = layer?.total ?? 0 } =
      status === 'Downloading' ? (progressDetail ?? {}) : {}
    this.#layers.set(id, { isDone: /^(Pull complete|Already exists)/.test(status), current, total })
    this.#say()
  }

  end(): void {
    if (this.#isTerminal && this.#said !== '') process.stderr.write('\n')
  }

  #say(): void {
    const layers = [...this.#layers.values()]
    const sum = (pick: 'current' | 'total'): string =>
      (layers.reduce((all, layer) => all + layer[pick], 0) / 1e6).toFixed(1)
    const done = `pulled ${layers.filter(({ isDone }) => isDone).length} of ${layers.length} layers`
    const line = this.#isTerminal ? `${done}, ${sum('current')} of ${sum('total')} MB` : done
    if (line === this.#said) return
    this.#said = line
    process.stderr.write(this.#isTerminal ? `\r\x1b[K${line}` : `${line}\n`)
  }
}
