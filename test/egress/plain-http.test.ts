import { expect, test } from 'vitest'
import { runApart } from '../support/apart.ts'

test('on port 80 a request is for the name that was connected to, one for each connection', async () => {
  const outcomes = await runApart('egress/apart/plain-http.ts')
  const fine = ['opened null', 'closed null']
  expect(outcomes).toEqual({
    right: { status: '200', seen: ['GET plain.test /'], events: fine },
    upper: { status: '200', seen: ['GET plain.test /'], events: fine },
    fronted: { status: '421', seen: [], events: ['refused host-mismatch'] },
    absolute: { status: '421', seen: [], events: ['refused host-mismatch'] },
    // Whatever stood behind the first request never arrived; the first one may have
    second: expect.objectContaining({ events: ['opened null', 'closed second-request'] }) as unknown,
    redirect: { status: '302', seen: ['GET plain.test /leave'], events: fine },
    banner: { status: '400', seen: [], events: ['refused bad-request'] },
    silent: { status: '408', seen: [], events: ['refused head-timeout'] },
    post: { status: '200', seen: ['POST plain.test /'], events: fine },
    followed: { answer: '', reason: 'name-invalid', verdict: 'refused' },
  })
  const { second } = outcomes as { second: { seen: readonly string[] } }
  for (const request of second.seen) expect(request).toBe('GET plain.test /')
})
