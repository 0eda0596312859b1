// Durations as text, thousands of them a second.

/** What stands behind the point for each number of thousandths. */
const behindPoint = Array.from({ length: 1000 }, (_, n) => String(n).padStart(3, '0').replace(/0+$/, ''))

/** Milliseconds to the microsecond, as JSON writes them: V8 looks for a fraction in a table that is cold, and then works it out. */
export function toTheMicrosecond(ms: number): string {
  const us = Math.round(ms * 1000)
  const whole = Math.floor(us / 1000)
  const rest = us - whole * 1000
  return rest === 0 ? String(whole) : `${whole}.${behindPoint[rest]}`
}
