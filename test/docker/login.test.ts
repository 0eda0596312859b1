// Whom a registry is to know the puller as: what the docker CLI remembers, in its file and with real helper programs.
import { expect, test } from 'vitest'
import { SallyportError } from '../../src/errors.ts'
import { type Login, loginFor, registryOf } from '../../src/sandbox/docker/login.ts'
import { dockerHome, type DockerHome } from '../support/docker-home.ts'

const password = 'what:nobody-should-see'
const image = '127.0.0.1:5000/me/server:1'
const serveraddress = '127.0.0.1:5000'
const ann: Login = { serveraddress, username: 'ann', password }

const login = async (home: DockerHome, config: unknown, of = image): Promise<Login | null> => {
  await home.remember(config)
  return loginFor(of, { DOCKER_CONFIG: home.path, PATH: home.searched })
}

const refusal = async (home: DockerHome, config: unknown): Promise<string> => {
  const error = SallyportError.from(await login(home, config).catch((thrown: unknown) => thrown))
  expect(error.code).toBe('ERR_REGISTRY_LOGIN')
  expect(JSON.stringify([error.message, error.details])).not.toContain(password)
  return error.message
}

test.each([
  ['nginx', 'https://index.docker.io/v1/'],
  ['me/server:1', 'https://index.docker.io/v1/'],
  ['docker.io/me/server', 'https://index.docker.io/v1/'],
  ['ghcr.io/me/server@sha256:0', 'ghcr.io'],
  ['localhost/server', 'localhost'],
  ['server:5000/me', 'server:5000'],
])('%s is of the registry %s', (name, registry) => {
  expect(registryOf(name)).toBe(registry)
})

test('a login in the file is found by any spelling of its registry, and another’s is not', async () => {
  await using home = await dockerHome(password)
  const auth = btoa(`ann:${password}`)
  for (const address of [serveraddress, `https://${serveraddress}`, `http://${serveraddress}/v2/`])
    expect(await login(home, { auths: { [address]: { auth } } })).toEqual(ann)
  expect(await login(home, { auths: { 'https://index.docker.io/v1/': { auth } } }, 'me/server')).toEqual({
    ...ann,
    serveraddress: 'https://index.docker.io/v1/',
  })
  const identitytoken = 'token'
  expect(await login(home, { auths: { [serveraddress]: { auth, identitytoken } } })).toEqual({
    serveraddress,
    identitytoken,
  })
  for (const config of [{}, { auths: { [serveraddress]: {} } }, { auths: { 'ghcr.io': { auth } } }])
    expect(await login(home, config)).toBeNull()
  expect(await loginFor(image, { HOME: '/nonexistent' })).toBeNull()
})

test('a helper is asked for its registry alone, before the file and on stdin', async () => {
  await using home = await dockerHome(password)
  const auth = btoa('ann:of-the-file')
  const auths = { [serveraddress]: { auth } }
  expect(await login(home, { auths, credsStore: 'test' })).toEqual(ann)
  expect(await login(home, { credsStore: 'gone', credHelpers: { [serveraddress]: 'test' } })).toEqual(ann)
  expect(await login(home, { auths, credHelpers: { 'ghcr.io': 'gone' } })).toMatchObject({
    password: 'of-the-file',
  })
  await home.helper(`read asked; [ "$*" = get ] && [ "$asked" = ${serveraddress} ] || exit 9
    echo '{"Username":"<token>","Secret":"${password}"}'`)
  expect(await login(home, { credsStore: 'test' })).toEqual({ serveraddress, identitytoken: password })
  await home.helper('echo credentials not found in native keychain; exit 1')
  expect(await login(home, { auths, credsStore: 'test' })).toBeNull()
})

test('what can not be had is refused, with what is wrong and none of the secret', async () => {
  await using home = await dockerHome(password)
  const secret = password.replace(':', '-')
  expect(await refusal(home, { auths: { [serveraddress]: { auth: btoa(secret) } } })).toContain(
    'no NAME:PASSWORD',
  )
  expect(await refusal(home, { credsStore: 'gone' })).toContain('docker-credential-gone gave no login')
  expect(await refusal(home, { credsStore: '../test' })).toContain('no name of a helper')
  expect(await refusal(home, [])).toContain('no JSON object')
  await home.helper(`echo ${password}; exit 3`)
  expect(await refusal(home, { credsStore: 'test' })).toContain('status 3')
  for (const said of [password, '{"Username":"ann"}', '[]', 'null']) {
    await home.helper(`echo '${said}'`)
    expect(await refusal(home, { credsStore: 'test' })).toContain('no Username and Secret')
  }
})
