// Requests that an engine never answers, or never to the end: given up, each takes its connection with it.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { type Engine, openEngine } from '../../src/sandbox/docker/engine.ts'
import { eventually } from '../support/eventually.ts'
import { isAlive } from '../support/leaks.ts'
import { withoutDescriptors } from '../support/no-descriptors.ts'
import { tempDir } from '../support/temp-dir.ts'

const nothing = (): void => {}
const requests: Readonly<
  Record<string, (engine: Engine, waiting: { readonly ms: number }) => Promise<unknown>>
> = {
  info: (engine, waiting) => engine.info(waiting),
  create: (engine, waiting) => engine.create('name', { HostConfig: {} }, waiting),
  attach: (engine, waiting) => engine.attach('id', 'stdout', waiting),
  start: (engine, waiting) => engine.start('id', waiting),
  kill: (engine, waiting) => engine.kill('id', 'SIGKILL', waiting),
  wait: (engine, waiting) => engine.wait('id', waiting),
  remove: (engine, waiting) => engine.remove('id', waiting),
  inspect: (engine, waiting) => engine.inspect('id', waiting),
  list: (engine, waiting) => engine.list([], waiting),
  events: (engine, waiting) => engine.events('label', nothing, waiting),
  image: (engine, waiting) => engine.image('image', waiting),
  stat: (engine, waiting) => engine.stat('id', '/', waiting),
  import: (engine, waiting) => engine.importImage(Buffer.alloc(1 << 20), 'image', waiting),
  pull: (engine, waiting) => engine.pull('image', nothing, waiting),
}
const head = (status: string): string =>
  `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`
const answers = {
  'says nothing': '',
  'stops in its answer': head('200 OK'),
  'stops in its refusal': head('500 Internal Server Error'),
}
// Those whose answer is a stream have it with its head, and so has one that asks for no more.
const isAnswered: Readonly<Record<string, readonly string[]>> = {
  'stops in its answer': ['attach', 'events', 'stat'],
  'stops in its refusal': ['stat'],
}

test.for(
  Object.entries(answers).flatMap(([how, answer]) =>
    Object.entries(requests)
      .filter(([what]) => isAnswered[how]?.includes(what) !== true)
      .map(([what, ask]) => ({ how, answer, what, ask })),
  ),
)('an engine that $how of `$what` keeps no connection', async ({ answer, ask }) => {
  await using folder = await tempDir()
  const path = join(folder.path, 's')
  const connections = new Set<Socket>()
  await using server = createServer((socket) => {
    connections.add(socket.on('error', nothing).once('close', () => connections.delete(socket)))
    socket.once('data', () => socket.write(answer)).resume()
  }).listen(path)
  await once(server, 'listening')
  const environment = { DOCKER_HOST: `unix://${path}` }
  const engine = await openEngine(findEndpoint(environment), environment)
  await expect(ask(engine, { ms: 100 })).rejects.toMatchObject({ code: 'ERR_ENGINE_TIMEOUT' })
  await eventually(() => connections.size === 0).finally(() => connections.forEach((one) => one.destroy()))
})

test.for(['inspect', 'attach'])('over ssh a session that says nothing of `%s` is ended', async (what) => {
  await using folder = await tempDir()
  // In the place of ssh, which waits just so where the other machine says nothing. It tells its number once it is there.
  const told = join(folder.path, 'told')
  const script = `#!/bin/sh\necho $$ > '${told}.new' && mv '${told}.new' '${told}'\nexec sleep 987654\n`
  await writeFile(join(folder.path, 'ssh'), script, { mode: 0o755 })
  const environment = { DOCKER_HOST: 'ssh://elsewhere', PATH: `${folder.path}:/usr/bin:/bin` }
  const engine = await openEngine(findEndpoint(environment), environment)
  // One that was given up before it was there shows nothing: it has longer the next time.
  for (let ms = 100; !existsSync(told); ms *= 2)
    await expect(requests[what]?.(engine, { ms })).rejects.toMatchObject({ code: 'ERR_ENGINE_TIMEOUT' })
  const session = Number(await readFile(told, 'utf8'))
  await eventually(() => !isAlive(session)).finally(
    () => isAlive(session) && process.kill(session, 'SIGKILL'),
  )
})

test('over ssh a request that no descriptor is left for fails by name, and ends nothing else', async () => {
  expect(await withoutDescriptors('ssh')).toMatch(/engine at ssh:\/\/elsewhere .* does not answer: EMFILE/)
})
