// The 2025-11-25 way in which a server sends a person to an address without a request: an error with a code of its own.
import { decodeString, members } from '../../lib/json-scan.ts'
import { foldKey } from '../../lib/key-folding.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import type { Response } from '../message/envelope.ts'
import { serverMay } from './server-may.ts'

const urlElicitationRequired = -32042

/** True where a server that may ask a person for nothing sends one to an address. */
export const mayNotSend = (
  server: Pick<ServerSettings, 'trust' | 'elicitation' | 'sampling'>,
  response: Pick<Response, 'text' | 'error'>,
): boolean => sendsToAddress(response) && !serverMay(server, 'elicitation')

/** True for an error by which a host, however it reads keys, shows a person addresses to open. */
const sendsToAddress = ({ text, error }: Pick<Response, 'text' | 'error'>): boolean =>
  error !== null &&
  text.charCodeAt(error.start) === 123 &&
  members(text, error.start, error.end).some(
    ({ key, start, end }) =>
      foldKey(key) === 'code' && codeIn(text.slice(start, end)) === urlElicitationRequired,
  )

/** As lenient readers take it: a number out of a text too, and nothing of what stands behind its point. */
const codeIn = (literal: string): number =>
  Math.trunc(Number(literal.startsWith('"') ? decodeString(literal).replaceAll('_', '') : literal))
