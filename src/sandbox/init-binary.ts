// Where the binaries for the inside of the wall lie, beside the code that was built with it.
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { arch } from 'node:process'
import { fileURLToPath } from 'node:url'
import { SallyportError } from '../errors.ts'

// This file is src/sandbox/… in the repository and dist/sandbox/… in the package: the binary is in dist both times.
const candidates = (name: string): string[] => [
  fileURLToPath(new URL(`../libexec/${arch}/${name}`, import.meta.url)),
  fileURLToPath(new URL(`../../dist/libexec/${arch}/${name}`, import.meta.url)),
]

/** Returns the absolute path of `sallyport-init` for this machine. Throws ERR_SANDBOX_UNENFORCEABLE where it was not built. */
export const findInitBinary = (): Promise<string> => findBinary('sallyport-init')

/** The same for `sallyport-probes`, which a verification runs as the server. */
export const findProbesBinary = (): Promise<string> => findBinary('sallyport-probes')

/** The same for `sallyport-observe`, which watches a server from outside of its sandbox. */
export const findObserveBinary = (): Promise<string> => findBinary('sallyport-observe')

const findBinary = async (name: string): Promise<string> => {
  for (const path of candidates(name)) {
    const isExecutable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isExecutable) return path
  }
  throw new SallyportError(
    'ERR_SANDBOX_UNENFORCEABLE',
    `${name} for ${arch} is missing, looked for ${candidates(name).join(' and ')}; run npm run setup`,
    { control: 'init', arch },
  )
}
