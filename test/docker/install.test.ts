// `sallyport install docker:IMAGE`, with a registry that answers: the one verb that pulls, and what it says then.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { engineTest } from '../support/engine.ts'
import type { TestEngine } from '../support/own-engine.ts'
import { registryOf } from '../support/registry.ts'
import { root } from '../support/source.ts'
import { dockerHome } from '../support/docker-home.ts'

interface Outcome {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
}

const install = (at: TestEngine, ...args: readonly string[]): Promise<Outcome> => installAs({}, at, ...args)

const installAs = async (
  more: Readonly<Record<string, string>>,
  at: TestEngine,
  ...args: readonly string[]
): Promise<Outcome> => {
  const command = [join(root, 'dist/cli/main.js'), 'install', ...args]
  const env = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...at.environment, ...more }
  try {
    return { ...(await promisify(execFile)(process.execPath, command, { env })), code: 0 }
  } catch (error) {
    return error as Outcome
  }
}

const name = `sallyport-test-${process.pid}`

engineTest('pulls an image with progress, says its digest, and finds it by that', async ({ engine: at }) => {
  await using registry = await registryOf(name, [{ '/bin/one': 'one' }, { '/bin/two': 'two' }])
  const image = `${registry.host}/${name}`
  try {
    const pinned = `${image}@${registry.digest}`
    expect(await install(at, `docker:${image}:latest`)).toMatchObject({
      code: 0,
      stdout: `image: ${pinned}\n`,
    })
    const facts = await at.engine.image(pinned)
    expect(facts?.RootFS.Layers).toHaveLength(2)
    await at.docker.getImage(image).remove({ force: true })
    const again = await install(at, `docker:${pinned}`, '--json')
    expect(JSON.parse(again.stdout)).toEqual({ image: pinned, pinned, id: facts?.Id })
    expect(again.stderr).toMatch(/pulled 2 of 2 layers\n$/)
    await at.docker.getImage(pinned).remove({ force: true })
    const moved = await registry.push([{ '/bin/three': 'three' }])
    expect(await install(at, `docker:${image}`)).toMatchObject({ stdout: `image: ${image}@${moved}\n` })
    await at.docker.getImage(`${image}@${moved}`).remove({ force: true })
  } finally {
    for (const { Id } of await at.docker.listImages({ filters: { reference: [image] } }))
      await at.docker.getImage(Id).remove({ force: true })
  }
})

engineTest('fails with the registry’s word for an image that it does not have', async ({ engine: at }) => {
  await using registry = await registryOf(name, [])
  const outcome = await install(at, `docker:${registry.host}/elsewhere`)
  expect(outcome).toMatchObject({ code: 1, stdout: '' })
  expect(outcome.stderr).toMatch(
    /refused to pull: .*; see that name, tag and digest .* \(ERR_ENGINE_REFUSED\)\n$/,
  )
})

const password = 'what:nobody-should-see'

engineTest('brings the login that the docker CLI remembers, and says none of it', async ({ engine: at }) => {
  await using registry = await registryOf(name, [{ '/bin/one': 'one' }], { login: `ann:${password}` })
  await using home = await dockerHome(password)
  const image = `${registry.host}/${name}`
  const env = { DOCKER_CONFIG: home.path, PATH: home.searched }
  await home.remember({ credsStore: 'test' })
  const pulled = await installAs(env, at, `docker:${image}`)
  expect(pulled).toMatchObject({ code: 0, stdout: `image: ${image}@${registry.digest}\n` })
  await at.docker.getImage(`${image}@${registry.digest}`).remove({ force: true })
  await home.remember({ auths: { [registry.host]: { auth: btoa('ann:another') } } })
  const refused = await installAs(env, at, `docker:${image}`)
  const words = /; log in with docker login, .*\(ERR_ENGINE_REFUSED\)/
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(words) })
  await home.remember({ credsStore: 'gone' })
  const unknown = await installAs(env, at, `docker:${image}`)
  expect(unknown).toMatchObject({ code: 7, stderr: expect.stringContaining('(ERR_REGISTRY_LOGIN)') })
  expect(JSON.stringify([pulled, refused, unknown])).not.toContain(password)
})

engineTest.for([
  'nginx',
  'docker:',
  'docker:-x',
  'docker:../etc',
  'docker:a b',
  'npm:x',
  'docker:x@sha256:0',
])('refuses %j as the name of an image', async (what, { engine: at }) => {
  expect(await install(at, '--', what)).toMatchObject({ code: 7, stdout: '' })
})
