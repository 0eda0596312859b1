// The two versions' files side by side.
import { expect, test } from 'vitest'
import { controls } from '../../../src/sandbox/cgroup/level.ts'
import { limitFiles } from '../../../src/sandbox/cgroup/limit-files.ts'

const limits = { memoryBytes: 536870912, pids: 64, cpu: 0.5 }
const lines = (version: 1 | 2): readonly string[] =>
  controls
    .flatMap((control) => limitFiles(version, control, limits))
    .map(({ file, value, isOptional }) => `${file}${isOptional ? '?' : ''} = ${value}`)

test('version 2 holds memory without swap, kills the whole group, and counts two tasks that are not the server’s', () => {
  expect(lines(2)).toEqual([
    'memory.max = 536870912',
    'memory.swap.max? = 0',
    'memory.oom.group = 1',
    'pids.max = 66',
    'cpu.max = 50000 100000',
  ])
})

test('version 1 bounds memory before memory and swap together, as the kernel demands', () => {
  expect(lines(1)).toEqual([
    'memory.limit_in_bytes = 536870912',
    'memory.memsw.limit_in_bytes? = 536870912',
    'memory.swappiness? = 0',
    'memory.kmem.tcp.limit_in_bytes? = 134217728',
    'pids.max = 66',
    'cpu.cfs_period_us = 100000',
    'cpu.cfs_quota_us = 50000',
  ])
})

test('a share of a core is never below what the kernel takes', () => {
  expect(limitFiles(2, 'cpu', { ...limits, cpu: 0.0001 })).toMatchObject([{ value: '1000 100000' }])
})
