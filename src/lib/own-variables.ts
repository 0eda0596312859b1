// The variables that a sandbox has of its own: the launch sets them, and `profile explain` says so.

/** In every sandbox; a host's values would name folders and users that the sandbox does not have. */
export const baseVariables: Readonly<Record<string, string>> = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: '/home/user',
  USER: 'user',
  LANG: 'C.UTF-8',
  TERM: 'dumb',
  TMPDIR: '/tmp',
}

/** Base names whose value on the host says nothing about the sandbox, so that no profile may pass them. */
export const ownNames: ReadonlySet<string> = new Set(['PATH', 'HOME', 'USER', 'TERM', 'TMPDIR'])

/** Where programs that ask for one find an HTTP proxy: on 127.0.0.1, on this port. */
export const proxyPort = 3128

/** Set with a way out, for programs that look for a proxy; those that don't reach the same hosts without. */
export const proxyVariables: Readonly<Record<string, string>> = {
  HTTP_PROXY: `http://127.0.0.1:${proxyPort}`,
  HTTPS_PROXY: `http://127.0.0.1:${proxyPort}`,
  http_proxy: `http://127.0.0.1:${proxyPort}`,
  https_proxy: `http://127.0.0.1:${proxyPort}`,
  NO_PROXY: 'localhost,127.0.0.1,::1',
  NODE_USE_ENV_PROXY: '1',
}
