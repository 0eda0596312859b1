// What was made is undone in reverse, each of it, whoever ends up with it.
import { expect, test } from 'vitest'
import { UndoStack } from '../../src/lib/undo-stack.ts'

test('last first, one after the other, whatever is to be disposed of and however', async () => {
  const undone: string[] = []
  const later = (name: string) => async (): Promise<void> => {
    await Promise.resolve()
    undone.push(name)
  }
  {
    await using stack = new UndoStack()
    stack.defer(later('first'))
    stack.use({ [Symbol.dispose]: () => void undone.push('second') })
    stack.use({ [Symbol.asyncDispose]: later('third') })
    stack.defer(() => undone.push('last'))
  }
  expect(undone).toEqual(['last', 'third', 'second', 'first'])
})

test('each is tried, and the first failure is what it fails by', async () => {
  const undone: string[] = []
  const stack = new UndoStack()
  stack.defer(() => undone.push('first'))
  stack.defer(() => Promise.reject(new Error('later')))
  stack.defer(() => {
    throw new Error('sooner')
  })
  await expect(stack[Symbol.asyncDispose]()).rejects.toThrow('sooner')
  expect(undone).toEqual(['first'])
})

test('what was handed over is undone by who has it, and once', async () => {
  const undone: string[] = []
  const stack = new UndoStack()
  stack.defer(() => undone.push('it'))
  const moved = stack.move()
  await stack[Symbol.asyncDispose]()
  expect(undone).toEqual([])
  await moved[Symbol.asyncDispose]()
  await moved[Symbol.asyncDispose]()
  expect(undone).toEqual(['it'])
})
