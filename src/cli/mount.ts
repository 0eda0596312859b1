// How a mount is written on a command line.
import { resolve } from 'node:path'
import { SallyportError } from '../errors.ts'

/** Reads `SOURCE:TARGET` or `SOURCE:TARGET:rw`; a relative source goes from where the person is. */
export function parseMount(text: string): { source: string; target: string; access: string; reason: string } {
  const [source = '', target = '', mode = 'ro', ...rest] = text.split(':')
  if (source === '' || !target.startsWith('/') || rest.length > 0 || (mode !== 'rw' && mode !== 'ro'))
    throw new SallyportError(
      'ERR_USAGE',
      `--mount: got ${JSON.stringify(text)}, expected SOURCE:TARGET or SOURCE:TARGET:rw, such as ./docs:/workspace`,
    )
  const access = mode === 'rw' ? 'write' : 'read'
  return { source: resolve(source), target, access, reason: 'named on the command line' }
}
