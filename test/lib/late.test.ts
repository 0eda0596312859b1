// A part of the program that is gone when it is first needed.
import { expect, test } from 'vitest'
import { late } from '../../src/lib/late.ts'

test('a part that is no more on disk fails by name, with what to do', async () => {
  const gone = new URL('gone.mjs', import.meta.url).href
  await expect(late(() => import(gone))).rejects.toMatchObject({
    message: expect.stringContaining('replaced on disk while this process ran'),
    cause: { code: 'ERR_MODULE_NOT_FOUND' },
  })
})

test('what fails in another way fails as it does', async () => {
  await expect(late(() => Promise.reject(new Error('its own')))).rejects.toThrow('its own')
})
