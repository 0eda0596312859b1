// What an image says of itself that no container can be made with.
import { test } from 'vitest'
import { judgeImageFacts } from '../../src/sandbox/docker/image-judge.ts'
import { expectRefusal } from '../support/refusal.ts'

const nothing = { reference: 'an/image', volumes: [], variables: [], labels: [] }

test.for([
  ['/', 'no folder'],
  ['', 'no folder'],
  ['data', 'no folder'],
  ['../data', 'no folder'],
  ['/data/../..', 'no folder'],
  ['/a\nb', 'no folder'],
  [`/${'v'.repeat(2_000)}`, 'no folder'],
  [`/${'v'.repeat(256)}`, 'no folder'],
  ['/sallyport/init', 'its own'],
  ['/proc', 'the kernel’s'],
  ['/proc/sys', 'the kernel’s'],
  ['/dev/null', 'the kernel’s'],
  ['/sys/kernel', 'the kernel’s'],
  ['/etc/passwd', 'has a file'],
])('a volume at %j is refused', async ([path = '', words = '']) => {
  await expectRefusal(
    () => judgeImageFacts({ ...nothing, volumes: [path] }, 'mine'),
    'ERR_IMAGE_UNSAFE',
    words,
  )
})

test.for([
  ['without a name', ['']],
  ['that no process can have', ['A\0B']],
  ['beyond number', Array.from({ length: 1_001 }, (_, index) => `V${index}`)],
  ['with names beyond measure', ['N'.repeat(70_000)]],
] as const)('variables %s are refused', async ([, variables]) => {
  await expectRefusal(
    () => judgeImageFacts({ ...nothing, variables }, 'mine'),
    'ERR_IMAGE_UNSAFE',
    'variable',
  )
})

test('labels that would keep the engine busy are refused', async () => {
  const labels = Array.from({ length: 1_001 }, (_, index) => `l${index}`)
  await expectRefusal(
    () => judgeImageFacts({ ...nothing, labels }, 'mine'),
    'ERR_IMAGE_UNSAFE',
    '1001 labels',
  )
})

test('more volumes than a container can be given in time are refused', async () => {
  const volumes = Array.from({ length: 101 }, (_, index) => `/v${index}`)
  await expectRefusal(
    () => judgeImageFacts({ ...nothing, volumes }, 'mine'),
    'ERR_IMAGE_UNSAFE',
    '101 volumes',
  )
})

test('what images have is taken', () => {
  const volumes = ['/data', '/dev/shm', '/sys/fs/cgroup', '/tmp', '/var/lib/a b']
  judgeImageFacts({ ...nothing, volumes, variables: ['PATH', 'LANG', 'é'] }, 'mine')
})
