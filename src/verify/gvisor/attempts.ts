// Attempts as gVisor answers them: the usual ones with other refusals, and others in their place.
import { type Attempt, finds } from '../attempt.ts'
import type { Scene, Trial } from '../probe.ts'

/** The attempts as they are, where these errnos stop them as well as the usual ones. */
export const alsoBy =
  (...errnos: readonly string[]) =>
  ({ attempts }: Trial): readonly Attempt[] =>
    attempts.map((attempt) => ({
      ...attempt,
      meaning(answer) {
        const meaning = attempt.meaning(answer)
        const isOne = meaning.is === 'otherwise' && errnos.includes(answer.outcome)
        return isOne ? { is: 'shut', observed: answer.outcome, errno: answer.outcome } : meaning
      },
    }))

export const without =
  (...asks: readonly string[]) =>
  ({ attempts }: Trial): readonly Attempt[] =>
    attempts.filter((attempt) => !asks.includes(attempt.asks.join(' ')))

const words = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '')

/** A folder in which nothing is but these. */
export const only = (path: string, known: readonly string[], also?: RegExp): Attempt =>
  finds(['list', path], (text) => {
    const more = words(text).filter((name) => !known.includes(name) && also?.test(name) !== true)
    return more.length === 0 ? null : more.slice(0, 5).join(', ')
  })

export const readOnlyInTable = ({ spec }: Scene): Attempt =>
  finds(['text', '/proc/self/mountinfo'], (text) => {
    const isReadOnly = new Map(
      words(text).map((line) => {
        const [, , , , target = '', options = ''] = line.split(' ')
        return [target, options.split(',').includes('ro')]
      }),
    )
    const read = spec.mounts.filter(({ access }) => access === 'read').map(({ target }) => target)
    const wrong = ['/', '/sallyport/init', ...read].filter((target) => isReadOnly.get(target) !== true)
    return wrong.length === 0 ? null : `not read-only: ${wrong.slice(0, 5).join(' ')}`
  })

/** Resource limits by number: what /proc/self/limits would say of them. */
export const held = (numbers: Readonly<Record<number, number>>): readonly Attempt[] =>
  Object.entries(numbers).map(([number, most]) =>
    finds(['limit', number], (text) => (text.split(' ').every((it) => Number(it) <= most) ? null : text)),
  )

export const isEndedWhole = (attempt: Attempt): Attempt => ({
  ...attempt,
  meaning: (answer) =>
    answer.outcome === 'ended' ? { is: 'shut', observed: 'ended', errno: null } : attempt.meaning(answer),
})
