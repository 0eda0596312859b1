// Whether one number is a multiple of another, by the digits that people write: 19.99 is one of 0.01, whatever doubles make of it.
import { parts } from './one-way.ts'

/** True when `number` divided by `step`, both as they are written, leaves nothing. */
export function isMultiple(number: number, step: number): boolean {
  if (Number.isSafeInteger(number) && Number.isSafeInteger(step)) return step !== 0 && number % step === 0
  const [one, other] = [parts(String(number)), parts(String(step))]
  const power = Math.min(one.power, other.power)
  const whole = (of: typeof one): bigint => BigInt(of.digits) * 10n ** BigInt(of.power - power)
  return other.digits !== '' && whole(one) % whole(other) === 0n
}
