// `HOST:PORT` of the command line, as an entry of a server's egress.
import { SallyportError } from '../errors.ts'

export interface Target {
  readonly host: string
  readonly port: number
  readonly reason: string
}

/** Throws ERR_USAGE where it is not a host and a port; which hosts there may be, the configuration's schema says. */
export function parseTarget(written: string, option = '--egress'): Target {
  const [, host, port] = /^([^:\s]+):([1-9][0-9]{0,4})$/.exec(written) ?? []
  if (host !== undefined && port !== undefined)
    return { host: host.toLowerCase(), port: Number(port), reason: 'named on the command line' }
  const got = JSON.stringify(written)
  throw new SallyportError(
    'ERR_USAGE',
    `${option}: got ${got}, expected HOST:PORT, e.g. api.github.com:443`,
    {
      got,
    },
  )
}
