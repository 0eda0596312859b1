// The caller's end: pairing, cancelling, losing the daemon, and giving the connection away.
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { SallyportError } from '../../src/errors.ts'
import { dial } from '../../src/rpc/dial.ts'
import type { Call, Service } from '../../src/rpc/answering.ts'
import { eventually } from '../support/eventually.ts'
import { fullBacklog } from '../support/full-backlog.ts'
import { serveOn } from '../support/control.ts'
import { withoutDescriptors } from '../support/no-descriptors.ts'
import { tempDir } from '../support/temp-dir.ts'

const service = (call: Service['call']): Service => ({
  call,
  attach: async () => ({
    result: {},
    take: (stream, head) => void stream.write(`greeting\n${head.toString()}`),
    abandon: () => undefined,
  }),
})

it('answers come back to their calls in any order', async () => {
  const gate = Promise.withResolvers<void>()
  await using served = await serveOn(
    service(async (method) => {
      if (method === 'first') await gate.promise
      else gate.resolve()
      return method
    }),
  )
  await using caller = await dial(served.path)
  expect(await Promise.all([caller.call('first', {}), caller.call('second', {})])).toEqual([
    'first',
    'second',
  ])
})

it('a refusal arrives as the error that the daemon threw', async () => {
  await using served = await serveOn(
    service(async () => {
      throw new SallyportError('ERR_POLICY_DENIED', 'no', { rule: 'rules[1]' })
    }),
  )
  await using caller = await dial(served.path)
  await expect(caller.call('x', {})).rejects.toMatchObject({
    code: 'ERR_POLICY_DENIED',
    details: { rule: 'rules[1]' },
  })
})

it('an aborted call is cancelled at the daemon, which serves on', async () => {
  let reason: unknown = null
  await using served = await serveOn(
    service(async (method: string, params: unknown, call: Call) => {
      if (method === 'calls/cancel') return call.cancel(Reflect.get(Object(params), 'request'))
      if (method !== 'wait') return 'fine'
      return new Promise((_, reject) => {
        call.signal.addEventListener('abort', () => {
          reason = call.signal.reason
          reject(new Error('cancelled'))
        })
      })
    }),
  )
  await using caller = await dial(served.path)
  const controller = new AbortController()
  const waiting = caller.call('wait', {}, { signal: controller.signal })
  controller.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  await eventually(() => reason !== null)
  expect(await caller.call('other', {})).toBe('fine')
})

it('a daemon whose socket holds no more for now is waited for', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 'full')
  await using daemon = await fullBacklog(path)
  const dialled = dial(path)
  daemon.goOn()
  await using caller = await dialled
  expect(await caller.call('session/attach', {})).toEqual({ session: 's-1' })
})

it('a caller that has no descriptor left is told that, and not that there is no daemon', async () => {
  await using folder = await tempDir()
  expect(JSON.parse(await withoutDescriptors('dial', join(folder.path, 'any')))).toMatchObject({
    message: expect.stringMatching(/EMFILE.*; stop what uses up descriptors/),
    data: { code: 'ERR_SHORTAGE' },
  })
})

it('no daemon is ERR_DAEMON_UNAVAILABLE with the command that starts one', async () => {
  await using folder = await tempDir()
  await expect(dial(join(folder.path, 'none'))).rejects.toMatchObject({
    code: 'ERR_DAEMON_UNAVAILABLE',
    message: expect.stringContaining('sallyport serve'),
  })
})

it('a daemon that goes away fails every call in flight and every later one', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const server = createServer((socket) => void socket.once('data', () => socket.destroy()))
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const caller = await dial(path)
  await expect(caller.call('a', {})).rejects.toMatchObject({ code: 'ERR_DAEMON_UNAVAILABLE' })
  await expect(caller.call('b', {})).rejects.toMatchObject({ code: 'ERR_DAEMON_UNAVAILABLE' })
  server.close()
})

it('a daemon that lets nobody in, as one without descriptors, is not said to be away', async () => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const server = createServer((socket) => void socket.destroy())
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const caller = await dial(path)
  await expect(caller.call('a', {})).rejects.toMatchObject({
    code: 'ERR_DAEMON_UNAVAILABLE',
    message: expect.stringMatching(/^the daemon closed .* \((EPIPE|ECONNRESET)\); see whether it still runs/),
  })
  server.close()
})

it('a handed-over connection starts at the byte behind the answer', async () => {
  await using served = await serveOn(service(async () => null))
  const caller = await dial(served.path)
  await caller.call('session/attach', {})
  const { socket, head } = caller.handOver()
  let got = head.toString()
  socket.on('data', (chunk) => (got += chunk.toString())).resume()
  await eventually(() => got === 'greeting\n')
  socket.destroy()
})
