// What the probes' program answers, read line by line, and what is looked at from outside meanwhile.
import type { Readable } from 'node:stream'
import { parseJson } from '../../lib/parse-json.ts'
import type { Answer, Attempt, Watched } from '../attempt.ts'

/**
 * Reads the answers to what was asked; once all are there, looks at what is to be seen from outside. `isOver` is called then.
 * Fewer answers than attempts are those up to the first that has none; `hasBegun` tells whether one was made at all, which the program
 * says by a space before each.
 */
export const answersOf = async (
  stdout: Readable | null,
  attempts: readonly Attempt[],
  program: Watched & { readonly isOver: () => void },
): Promise<{ readonly answers: readonly Answer[]; readonly hasBegun: boolean }> => {
  const count = asked(attempts).length
  const watched = new Map<Attempt, Answer>()
  const lookAround = async (): Promise<void> => {
    for (const attempt of attempts)
      if (attempt.watch !== undefined) watched.set(attempt, await attempt.watch(program))
    program.isOver()
  }
  if (count === 0) await lookAround()
  let [output, lines] = ['', 0]
  for await (const chunk of stdout ?? []) {
    const text = (chunk as Buffer).toString('latin1')
    const before = lines
    output += text
    lines += text.split('\n').length - 1
    if (before < count && lines >= count) await lookAround()
  }
  const told = answersIn(output, count)
  let next = 0
  const answers: Answer[] = []
  for (const attempt of attempts) {
    const answer = attempt.watch === undefined ? told[next++] : watched.get(attempt)
    if (answer === undefined) break
    answers.push(answer)
  }
  return { answers, hasBegun: output !== '' }
}

/** Those that the program is asked; the others are looked at from outside. */
export const asked = (attempts: readonly Attempt[]): readonly Attempt[] =>
  attempts.filter(({ watch }) => watch === undefined)

/**
 * Reads what the program wrote, a line for each attempt, up to the first that is no answer: what stands behind it was
 * answered by nobody. More answers than attempts are nobody's either.
 */
export const answersIn = (output: string, attempts: number): readonly Answer[] => {
  const answers: Answer[] = []
  for (const line of output.split('\n').slice(0, -1)) {
    const answer = answerIn(line)
    if (answer === null) break
    answers.push(answer)
  }
  return answers.length > attempts ? [] : answers
}

const answerIn = (line: string): Answer | null => {
  const { outcome, text, ms } = { ...(parsed(line) as object) } as Readonly<Record<string, unknown>>
  return typeof outcome === 'string' && typeof text === 'string' && typeof ms === 'number'
    ? { outcome, text, ms }
    : null
}

const parsed = (line: string): unknown => {
  try {
    return parseJson(line)
  } catch {
    return null
  }
}
