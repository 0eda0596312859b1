// Fields of a question to a person whose names say that the answer is a secret.
import { printable } from './unavailable.ts'

/** Names told of one question, characters of each, and fields that are looked at */
const most = { names: 32, characters: 64, fields: 1024 } as const

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

/** The sensitive ones among the names and titles of the fields that a question's `requestedSchema` has; those that nobody looks at may be. */
export function sensitiveFields(params: unknown): readonly string[] {
  const properties: unknown = Reflect.get(
    Object(Reflect.get(Object(params), 'requestedSchema')),
    'properties',
  )
  if (typeof properties !== 'object' || properties === null) return []
  const all = Object.keys(properties)
  const found = all
    .slice(0, most.fields)
    .filter((name) => isSensitive(name) || isSensitive(titleOf(Reflect.get(properties, name))))
    .slice(0, most.names)
    .map((name) => printable(name.slice(0, most.characters)).slice(0, most.characters))
  return all.length <= most.fields ? found : [...found, `${all.length - most.fields} further fields`]
}

const titleOf = (field: unknown): unknown => Reflect.get(Object(field), 'title')

function isSensitive(name: unknown): boolean {
  if (typeof name !== 'string') return false
  const plain = name.slice(0, 1000).normalize('NFKC').slice(0, 1000)
  const separate = plain.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  const found = separate.split(/[^a-z0-9]+/)
  return found.some((word) => words.has(word)) || parts.test(found.join(''))
}
