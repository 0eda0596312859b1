// Fields of a question to a person whose names say that the answer is a secret.
import { printable } from './unavailable.ts'

/** Names told of one question, and characters of each */
const most = { names: 32, characters: 64 } as const

/** Anywhere in a name, whatever stands between its words */
const parts =
  /passw(or)?d|passphrase|passcode|secret|token|apikey|accesskey|privatekey|sshkey|signingkey|encryptionkey|credential|creditcard|cardnumber|accountnumber|routingnumber|mnemonic|seedphrase|recoverycode|verificationcode|securitycode|authcode|onetimecode|bearer|cookie|socialsecurity/
/** Only as a word of its own */
const words = new Set([
  'pass',
  'pwd',
  'pin',
  'otp',
  'totp',
  'mfa',
  '2fa',
  'cvv',
  'cvc',
  'ssn',
  'iban',
  'auth',
])

/** The sensitive ones among the names and titles of the fields that a question's `requestedSchema` has. */
export function sensitiveFields(params: unknown): readonly string[] {
  const properties: unknown = Reflect.get(
    Object(Reflect.get(Object(params), 'requestedSchema')),
    'properties',
  )
  if (typeof properties !== 'object' || properties === null) return []
  return Object.entries(properties)
    .filter(([name, field]) => [name, Reflect.get(Object(field), 'title')].some(isSensitive))
    .slice(0, most.names)
    .map(([name]) => printable(name).slice(0, most.characters))
}

function isSensitive(name: unknown): boolean {
  if (typeof name !== 'string') return false
  const plain = name.normalize('NFKC').slice(0, 1000)
  const separate = plain.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  const found = separate.split(/[^a-z0-9]+/)
  return found.some((word) => words.has(word)) || parts.test(found.join(''))
}
