// What was not foreseen still has the name that a caller can act on.
import { expect, test } from 'vitest'
import { catalogue, SallyportError } from '../src/errors.ts'

test.each(['EMFILE', 'ENOMEM', 'EAGAIN', 'ENOSPC', 'ERR_WORKER_INIT_FAILED', 'ERR_INVALID_PACKAGE_CONFIG'])(
  '%s is a shortage of the machine, however deep it lies',
  (code) => {
    const cause = Object.assign(new Error(`${code}: it ran out`), { code })
    for (const thrown of [cause, new Error('it failed', { cause })]) {
      const error = SallyportError.from(thrown)
      expect(error).toMatchObject({ code: 'ERR_SHORTAGE', cause: thrown })
      expect(error.message).toMatch(/(it failed|it ran out); stop what uses up/)
      expect(error.toRpc().data).toMatchObject({ retryable: true })
    }
  },
)

test('anything else that nobody foresaw is ours', () => {
  expect(SallyportError.from(new Error('EMFILE'))).toMatchObject({ code: 'ERR_INTERNAL', message: 'EMFILE' })
})

test('no detail takes the place of what the catalogue says of a code', () => {
  const details = JSON.parse('{"code":"EMFILE","failure":"none","retryable":false,"errno":"EMFILE"}')
  expect(new SallyportError('ERR_BUSY', 'busy', details).toRpc().data).toEqual({
    code: 'ERR_BUSY',
    failure: null,
    retryable: true,
    errno: 'EMFILE',
  })
})

test('where a refusal was made is not written down: whoever provokes many would have us do nothing else', () => {
  expect(new SallyportError('ERR_PARSE', 'no JSON').stack).not.toContain('\n')
  expect(new Error('ours').stack).toContain('\n')
  const cause = new Error('ours')
  expect(SallyportError.from(cause).cause).toBe(cause)
})

test('no two codes have one number', () => {
  const numbers = Object.values(catalogue).map(({ rpc }) => rpc)
  expect(numbers).toEqual([...new Set(numbers)])
})
