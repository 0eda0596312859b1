// What stands ready to take away what a killed verification would leave.
import { expect, test } from 'vitest'
import { withoutDescriptors } from '../../support/no-descriptors.ts'

test('a want of descriptors is told of as the shortage that it is', async () => {
  expect(JSON.parse(await withoutDescriptors('janitor'))).toMatchObject({
    message: expect.stringMatching(/could not be started.*EMFILE.*; stop what uses up/),
    data: { code: 'ERR_SHORTAGE', retryable: true },
  })
})
