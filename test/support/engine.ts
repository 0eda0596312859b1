// A container engine for tests: the one that answers, or dockerd of the test file's own.
import Docker from 'dockerode'
import { afterAll, expect, test } from 'vitest'
import { findEndpoint } from '../../src/sandbox/docker/endpoint.ts'
import { type Engine, openEngine } from '../../src/sandbox/docker/engine.ts'
import { canStartEngine, ownEngine, type TestEngine } from './own-engine.ts'
import { patienceMs } from './patience.ts'
import { isRoot } from './user.ts'

/**
 * Tests that need an engine, which they take as the fixture `engine`: one for each file.
 *
 * Where none answers and none can be started they are skipped by name, and in CI that counts as a failure.
 */
export const engineTest = test.extend<{ engine: TestEngine }>({
  engine: async ({ skip }, use) => {
    const { engine, missing } = await fileEngine()
    if (engine === null) return skip(missing)
    await use(engine)
  },
})

/** Waits until the engine has no container: one that is slow to let go of an ended one is asked again and again, by nobody waited for. */
export const expectNoContainers = (engine: Engine): Promise<void> =>
  expect.poll(() => engine.list([]), { timeout: patienceMs }).toEqual([])

interface Found {
  readonly engine: TestEngine | null
  readonly missing: string
}

/** Why a test of this file that takes no fixture has no engine, or its environment. */
export const engineOrWhy = async (): Promise<
  { readonly environment: TestEngine['environment'] } | { readonly missing: string }
> => {
  const { engine, missing } = await fileEngine()
  return engine === null ? { missing } : { environment: engine.environment }
}

let bringingUp: Promise<Found> | null = null
const fileEngine = (): Promise<Found> => (bringingUp ??= bringUp())

afterAll(async () => {
  const { engine } = (await bringingUp) ?? { engine: null }
  await engine?.[Symbol.asyncDispose]()
})

const bringUp = async (): Promise<Found> => {
  const answering = await answeringEngine()
  if (answering !== null) return { engine: answering, missing: '' }
  if (canStartEngine) return { engine: await ownEngine(), missing: '' }
  const missing = isRoot
    ? 'dockerd is not installed: apt-get install docker.io'
    : 'no container engine answers that this user may use'
  return { engine: null, missing }
}

const answeringEngine = async (): Promise<TestEngine | null> => {
  const endpoint = findEndpoint(process.env)
  if (endpoint.kind !== 'unix') return null
  const engine = await openEngine(endpoint, {})
  try {
    await engine.info({ ms: 5000 })
  } catch {
    engine[Symbol.dispose]()
    return null
  }
  return {
    environment: { DOCKER_HOST: `unix://${endpoint.socketPath}` },
    engine,
    docker: new Docker({ socketPath: endpoint.socketPath }),
    [Symbol.asyncDispose]: () => Promise.resolve(engine[Symbol.dispose]()),
  }
}
