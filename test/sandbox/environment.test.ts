// A server's environment is the declared list, and nothing else.
import { describe, expect, test } from 'vitest'
import { buildEnvironment, type Environment } from '../../src/sandbox/environment.ts'
import { expectRefusal } from '../support/refusal.ts'

const base = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  HOME: '/home/user',
  USER: 'user',
  LANG: 'C.UTF-8',
  TERM: 'dumb',
  TMPDIR: '/tmp',
}

const build = ({
  pass = [],
  set = {},
  override = {},
  env = {},
  envOverride = {},
  daemon = {},
  supplied = {},
}: {
  pass?: readonly string[]
  set?: Record<string, string>
  override?: Record<string, string>
  env?: Record<string, string>
  envOverride?: Record<string, string>
  daemon?: NodeJS.ProcessEnv
  supplied?: Record<string, string>
} = {}): Environment =>
  buildEnvironment({
    server: { name: 'probe', env, envOverride },
    profile: { name: 'offline', environment: { pass, set, override } },
    daemon,
    supplied,
  })

const valuesOf = ({ variables }: Environment) =>
  Object.fromEntries(Object.entries(variables).map(([name, { value }]) => [name, value]))

describe('the environment', () => {
  test('is the base alone where nothing is declared, whatever the daemon has', () => {
    const daemon = {
      ...process.env,
      PATH: '/evil',
      HOME: '/root',
      AWS_SECRET_ACCESS_KEY: 'canary',
      LANG: 'de',
    }
    expect(valuesOf(build({ daemon }))).toEqual(base)
  })

  test('is exactly base, pass, set and env, the later winning, each with its origin', () => {
    const built = build({
      pass: ['LANG', 'TZ', 'ABSENT'],
      set: { MODE: 'profile', REGION: 'profile' },
      env: { REGION: 'server', TERM: 'xterm' },
      daemon: { LANG: 'de_DE.UTF-8', TZ: 'UTC', UNASKED: 'x' },
    })
    expect(valuesOf(built)).toEqual({
      ...base,
      LANG: 'de_DE.UTF-8',
      TZ: 'UTC',
      MODE: 'profile',
      REGION: 'server',
      TERM: 'xterm',
    })
    expect(built.variables).toMatchObject({
      PATH: { origin: 'base' },
      TZ: { origin: 'pass' },
      MODE: { origin: 'profile' },
      REGION: { origin: 'server' },
    })
  })

  test('takes nothing from an object’s prototype', () => {
    expect(valuesOf(build({ pass: ['toString', 'constructor', '__proto__'] }))).toEqual(base)
  })
})

describe('a refused name', () => {
  const refused = `
    LD_PRELOAD ld_preload LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES NODE_OPTIONS Node_Options NODE_PATH PYTHONPATH PYTHONSTARTUP
    PYTHONHOME RUBYOPT RUBYLIB PERL5OPT PERL5LIB JAVA_TOOL_OPTIONS CLASSPATH BASH_ENV ENV BASH_FUNC_x CDPATH GLOBIGNORE
    GIT_SSH_COMMAND HTTP_PROXY https_proxy ALL_PROXY UV_INDEX_URL NPM_CONFIG_REGISTRY npm_config_registry OPENSSL_CONF
    SSL_CERT_FILE AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN GITHUB_TOKEN GITLAB_TOKEN NPM_TOKEN DOCKER_PASSWORD VAULT_TOKEN
    DATABASE_URL REDIS_URL SSH_AUTH_SOCK AZURE_CLIENT_SECRET GOOGLE_APPLICATION_CREDENTIALS GCP_SERVICE_ACCOUNT_KEY
    ZEPH_OPENAI_API_KEY ZEPH_SLACK_SIGNING_SECRET MY_SECRET MY_PASSWORD STRIPE_API_KEY CARGO_REGISTRY_TOKEN
  `
    .trim()
    .split(/\s+/)

  test.each(refused)('%s is refused in pass, in set and in env alike', async (name) => {
    await expectRefusal(() => build({ pass: [name] }), 'ERR_ENVIRONMENT_REFUSED', name, 'profile offline')
    await expectRefusal(
      () => build({ set: { [name]: 'v' } }),
      'ERR_ENVIRONMENT_REFUSED',
      name,
      'profile offline',
    )
    await expectRefusal(
      () => build({ env: { [name]: 'v' } }),
      'ERR_ENVIRONMENT_REFUSED',
      name,
      'server probe',
    )
  })

  test('comes through only with a reason, which is returned for the record', async () => {
    const built = build({ env: { NODE_OPTIONS: '--x' }, envOverride: { NODE_OPTIONS: 'source maps' } })
    expect(valuesOf(built)).toEqual({ ...base, NODE_OPTIONS: '--x' })
    expect(built.overrides).toMatchObject([{ name: 'NODE_OPTIONS', reason: 'source maps' }])
    for (const envOverride of [{ NODE_OPTIONS: ' ' }, { node_options: 'source maps' }, { NODE_PATH: 'x' }])
      await expectRefusal(
        () => build({ env: { NODE_OPTIONS: '--x' }, envOverride }),
        'ERR_ENVIRONMENT_REFUSED',
      )
  })

  test('is not let through by the other part’s override', async () => {
    const reason = { NODE_OPTIONS: 'reason' }
    await expectRefusal(
      () => build({ env: { NODE_OPTIONS: 'v' }, override: reason }),
      'ERR_ENVIRONMENT_REFUSED',
    )
    await expectRefusal(
      () => build({ set: { NODE_OPTIONS: 'v' }, envOverride: reason }),
      'ERR_ENVIRONMENT_REFUSED',
    )
  })
})

describe('a variable that is none', () => {
  test.each(['', 'A-B', '1A', 'A B', 'A=B', 'A\n', 'A\0', 'Ä', 'A'.repeat(257)])(
    '%j is refused',
    async (name) => {
      await expectRefusal(() => build({ env: { [name]: 'v' } }), 'ERR_ENVIRONMENT_REFUSED')
      await expectRefusal(() => build({ pass: [name] }), 'ERR_ENVIRONMENT_REFUSED')
    },
  )

  test('is the supervisor’s where it supplies one, of a refused family too, and nobody else may set the same', async () => {
    const { variables } = build({ supplied: { GITHUB_TOKEN: 'placeholder', SSL_CERT_FILE: '/x' } })
    expect(variables).toMatchObject({
      GITHUB_TOKEN: { value: 'placeholder', origin: 'supervisor' },
      SSL_CERT_FILE: { value: '/x', origin: 'supervisor' },
    })
    await expectRefusal(
      () => build({ set: { MODE: 'a' }, supplied: { MODE: 'b' } }),
      'ERR_ENVIRONMENT_REFUSED',
      'MODE',
    )
  })

  test('is refused with a NUL in its value or too many bytes, and the value is not repeated', async () => {
    const hidden = 'hunter2'
    for (const value of [`${hidden}\0`, hidden.repeat(18_725), 'x'.repeat(131_070)]) {
      const thrown = await Promise.resolve()
        .then(() => build({ env: { A: value } }))
        .catch((error: unknown) => error)
      expect(thrown).toMatchObject({ code: 'ERR_ENVIRONMENT_REFUSED' })
      expect(String(thrown)).not.toContain(hidden)
    }
    const many = Object.fromEntries(
      Array.from({ length: 5 }, (_, index) => [`A${index}`, 'x'.repeat(60_000)]),
    )
    await expectRefusal(() => build({ env: many }), 'ERR_ENVIRONMENT_REFUSED', 'is the most')
  })

  test('is as long with its name as the kernel takes', () => {
    const value = 'x'.repeat(131_069)
    expect(valuesOf(build({ env: { A: value } }))['A']).toBe(value)
  })

  test('the sandbox’s own may be set and not passed on', async () => {
    for (const name of ['PATH', 'HOME', 'USER', 'TERM', 'TMPDIR'])
      await expectRefusal(
        () => build({ pass: [name], daemon: { [name]: 'x' } }),
        'ERR_ENVIRONMENT_REFUSED',
        name,
      )
    expect(valuesOf(build({ env: { HOME: '/tmp' } }))['HOME']).toBe('/tmp')
  })
})
