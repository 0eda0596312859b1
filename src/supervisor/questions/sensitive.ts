// Fields of a question to a person whose names or words say that the answer is a secret.
import { normalized } from '../../lib/marks.ts'
import { printable } from '../message/unavailable.ts'

/** Names told of one question, characters of each, fields that are looked at, and how deep one may stand in another */
const most = { names: 32, characters: 64, fields: 1024, depth: 8 } as const
/** Characters of all of a question's names and texts that are looked at, compatibility forms taken apart */
const lookedAt = 16_384

/** Anywhere in a name, whatever stands between its words */
const parts =
  /passw(or)?d|passphrase|passcode|secret|token|apikey|accesskey|privatekey|sshkey|signingkey|encryptionkey|credential|creditcard|cardnumber|accountnumber|routingnumber|mnemonic|seedphrase|recoverycode|verificationcode|securitycode|authcode|onetimecode|bearer|cookie|socialsecurity/
/** The same in the languages that are asked in most, without their accents */
const elsewhere =
  /passwort|kennwort|motdepasse|contrasena|palabraclave|senha|wachtwoord|losenord|adgangskode|salasana|has[lł]o|heslo|jelszo|parola|sifre|matkhau|katasandi|пароль|секрет|κωδικος|סיסמ|كلمةالمرور|كلمةالسر|पासवर्ड|รหัสผ่าน|密码|密碼|口令|密钥|パスワード|暗証番号|비밀번호|암호/u
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
  'authorization',
  'authorisation',
  'jwt',
  'pswd',
  'psw',
  'mpin',
  'cvv2',
  'cvc2',
])
/** The same, or as two words */
const compounds = new Set([
  'passkey',
  'pincode',
  'otpcode',
  'smscode',
  'accesscode',
  'sessionid',
  'recoveryphrase',
])
/** Only as all of a name: in a sentence they are something else */
const wholes = new Set(['pat', 'seed', 'cardno'])
/** Letters of other alphabets that look like Latin ones, and those */
const alike: ReadonlyMap<string, string> = new Map(
  'аеорсухіѕјԁкмтпοαερνυικτ'.split('').map((letter, n) => [letter, 'aeopcyxisjdkmtnoaepvuikt'[n] ?? '']),
)

/** Signs that are written for letters */
const signs: ReadonlyMap<string, string> = new Map(
  '01345@$'.split('').map((sign, n) => [sign, 'oieasas'[n] ?? '']),
)

const anySigns = /[01345@$]/g
const anyAlike = new RegExp(`[${[...alike.keys()].join('')}]`, 'gu')

/**
 * The sensitive ones among the fields that a question's `requestedSchema` has, by name, title, description and format, or that it is so in
 * its own words; those fields and texts that nobody looks at, since there are too many or they are too long, may be.
 */
export function sensitiveFields(params: unknown): readonly string[] {
  let left = lookedAt
  const isSensitive = (text: unknown): boolean => {
    if (typeof text !== 'string' || left < 0) return false
    const plain = text.length > left ? null : normalized(text, 'NFKD')
    left -= plain?.length ?? text.length
    return left >= 0 && plain !== null && saysSecret(plain)
  }
  const all = fieldsIn(member(params, 'requestedSchema'))
  const found = all
    .slice(0, most.fields)
    .filter(({ name, field }) =>
      [name, ...['title', 'description', 'format'].map((key) => member(field, key))].some(isSensitive),
    )
    .slice(0, most.names)
    .map(({ name }) => printable(name.slice(0, most.characters)).slice(0, most.characters))
  if (all.length > most.fields) return [...found, `${all.length - most.fields} further fields`]
  const isAsked = found.length === 0 && isSensitive(member(params, 'message'))
  return left < 0 ? [...found, '(texts that are too long)'] : isAsked ? ['(its words)'] : found
}

interface Field {
  readonly name: string
  readonly field: unknown
}

/** The fields of a schema and of the schemas within, outer ones first; beyond so many none is looked into. */
function fieldsIn(schema: unknown): readonly Field[] {
  const found: Field[] = []
  let level = [schema]
  for (let depth = 0; depth < most.depth && level.length > 0; depth++) {
    const next: unknown[] = []
    for (const one of level) {
      const fields = ['properties', '$defs', 'definitions'].flatMap((key) => fieldsOf(member(one, key)))
      for (const field of fields) found.push(field)
      next.push(
        ...fields.slice(0, most.fields).map(({ field }) => field),
        ...listed(one).slice(0, most.fields),
      )
      if (found.length > most.fields) return found
    }
    level = next.slice(0, most.fields)
  }
  return found
}

const fieldsOf = (properties: unknown): readonly Field[] =>
  typeof properties === 'object' && properties !== null
    ? Object.entries(properties).map(([name, field]: [string, unknown]) => ({ name, field }))
    : []

const listed = (schema: unknown): readonly unknown[] =>
  ['items', 'anyOf', 'oneOf', 'allOf', 'then', 'else'].flatMap((key) => member(schema, key) ?? [])

const member = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined

/** The text is decomposed (NFKD). */
function saysSecret(text: string): boolean {
  const plain = text.replaceAll(/\p{M}+/gu, '')
  const separate = plain.replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2').toLowerCase()
  const joined = separate.replaceAll(/[^\p{L}\p{N}]+/gu, '')
  if (elsewhere.test(joined) || elsewhere.test(text.normalize('NFC'))) return true
  const latin = separate.replaceAll(anyAlike, (letter) => alike.get(letter) ?? letter)
  // A sign in a name of capitals is no border between words.
  return [latin, lettersOf(latin), lettersOf(plain.toLowerCase())].some(namesSecret)
}

const lettersOf = (text: string): string => text.replaceAll(anySigns, (sign) => signs.get(sign) ?? '')

function namesSecret(latin: string): boolean {
  const found = latin.split(/[^a-z0-9]+/)
  const isSecret = (word: string, n: number): boolean =>
    words.has(word) || compounds.has(word) || compounds.has(word + (found[n + 1] ?? ''))
  const joined = found.join('')
  return found.some(isSecret) || wholes.has(joined) || parts.test(joined)
}
