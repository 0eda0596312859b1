// sandbox/README.md lists the steps of the launcher, of init and of the child as the code takes them: same order, same words.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const read = (path: string): string =>
  readFileSync(new URL(`../../../sandbox/${path}`, import.meta.url), 'utf8')

const inCode = (file: string): string[] =>
  [...read(file).matchAll(/^ {2}\/\/ (\d+)\. ([^.:]+)[.:]/gm)].map(([, number, step]) => `${number}. ${step}`)

const inReadme = (after: string): string[] => {
  const [list = ''] = (read('README.md').split(after)[1] ?? '').trimStart().split('\n\n')
  return list.split('\n').map((line) => line.replace(/[:(,].*/, '').trim())
}

it.each([
  ['## outer: the steps\n', 'init/outer.c'],
  ['## container: the steps\n', 'init/container.c'],
  ['## init: the steps\n', 'init/init.c'],
  ['in the child:\n', 'init/exec.c'],
])('the list after %j is the one of %s', (after, file) => {
  const steps = inCode(file)
  expect(steps.length).toBeGreaterThan(4)
  expect(inReadme(after)).toEqual(steps)
})
