// What an HTTP client is told when it does not get through: a status and one word of ours, nothing of what it sent.
import type { Refusal } from './refusal.ts'

const phrases: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  421: 'Misdirected Request',
  431: 'Request Header Fields Too Large',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

const statuses: Readonly<Record<string, number>> = {
  'bad-request': 400,
  'name-invalid': 400,
  'method-refused': 405,
  'head-timeout': 408,
  'host-mismatch': 421,
  'head-too-large': 431,
  'too-many': 503,
  'dns-timeout': 504,
  'connect-timeout': 504,
}

/** Returns the whole answer to a refused request. Most clients show its first line alone, so that the word is in it too. */
export function refusalAnswer({ reason, verdict }: Refusal): string {
  const status = statuses[reason] ?? (verdict === 'failed' ? 502 : 403)
  const word = /^[a-z0-9:-]{1,64}$/.test(reason) ? reason : 'refused'
  const body = `sallyport: ${word}\n`
  return [
    `HTTP/1.1 ${status} ${phrases[status] ?? 'Forbidden'} (sallyport: ${word})`,
    'Content-Type: text/plain',
    `Content-Length: ${body.length}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

/** What follows a CONNECT that may go on. */
export const connectAnswer = 'HTTP/1.1 200 Connection established\r\n\r\n'
