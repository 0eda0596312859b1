// What the benchmark of the way out and its two ends have in common.
export const address = '127.0.0.1'
/** Of a download */
export const megabytes = 100
/** Names of the one host: a way that is passed on as it is, and one where a credential is swapped */
export const hosts = { tunnel: 'tunnel.test', swap: 'swap.test' } as const
