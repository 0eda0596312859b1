// What a server says of its lists while it is being asked is never lost, however close to the answer it comes.
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Survey } from '../../../src/supervisor/client/survey.ts'
import { serverSettings } from '../../support/server-settings.ts'

test.each(Array.from({ length: 12 }, (_, n) => n))(
  'a change that comes %i steps behind the question has it asked again before anything is called',
  async (steps) => {
    let asked = 0
    const ask = async (): Promise<void> => void asked++
    const survey = new Survey({ server: serverSettings('echo.mjs'), ask })
    survey.begin()
    for (let n = 0; n < steps; n++) await Promise.resolve()
    const before = asked
    survey.changed()
    survey.end() // nothing asks again by itself
    await turn()
    await survey.known()
    expect(asked).toBe(before + 1)
  },
)
