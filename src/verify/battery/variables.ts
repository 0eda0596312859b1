// Probe 145: no variable that loads code or carries a secret is given to a server by accident, by whoever's word.
import { finds, seen, type Attempt } from '../attempt.ts'
import { refusalOf, type Wanted, type Word } from '../lab/asked.ts'
import { proxyVariables } from '../../lib/own-variables.ts'
import type { Probe } from '../probe.ts'

/** What each loads, leads to or carries: some variables of each family, and of each way to spell one. */
const families: Readonly<Record<string, string>> = {
  'the dynamic linker': 'LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT ld_preload DYLD_INSERT_LIBRARIES',
  'the C library': 'GCONV_PATH LOCPATH NLSPATH GLIBC_TUNABLES MALLOC_CHECK_',
  'a shell':
    'BASH_ENV BASH_FUNC_x BASHOPTS ENV SHELLOPTS PROMPT_COMMAND PS4 ZDOTDIR FPATH CDPATH GLOBIGNORE IFS',
  'the search for programs': 'PATH',
  Python: 'PYTHONPATH PYTHONSTARTUP PYTHONHOME _PYTHON_SYSCONFIGDATA_NAME',
  Ruby: 'RUBYOPT RUBYLIB GEM_PATH BUNDLE_GEMFILE BUNDLER_VERSION',
  'Node, Bun and Deno':
    'NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS node_options ELECTRON_RUN_AS_NODE BUN_INSTALL DENO_DIR',
  Perl: 'PERL5LIB PERL5OPT PERLIO',
  'Lua, PHP and Tcl': 'LUA_PATH LUA_INIT PHPRC PHP_INI_SCAN_DIR TCLLIBPATH',
  Java: 'JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH MAVEN_OPTS GRADLE_OPTS',
  '.NET': 'DOTNET_STARTUP_HOOKS COMPLUS_Version CORECLR_PROFILER COR_PROFILER',
  Erlang: 'ERL_FLAGS ELIXIR_ERL_OPTIONS',
  'OpenSSL and certificates':
    'OPENSSL_CONF OPENSSL_MODULES SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE X_CA_CERT X_CA_CERTS CURL_HOME',
  git: 'GIT_SSH_COMMAND GIT_CONFIG_GLOBAL',
  npm: 'NPM_CONFIG_REGISTRY npm_config_script_shell YARN_RC_FILENAME PNPM_HOME COREPACK_NPM_REGISTRY',
  'package managers of Python': 'UV_INDEX_URL PIP_INDEX_URL PIPX_HOME POETRY_HOME CONDA_PREFIX VIRTUAL_ENV',
  'Rust and Go':
    'CARGO_HOME RUSTC_WRAPPER RUSTFLAGS RUSTDOCFLAGS GOFLAGS GOPROXY GOENV GOPATH GOROOT GOTOOLCHAIN GONOSUMDB GOPRIVATE CGO_CFLAGS',
  'what other programs run':
    'MAKEFLAGS MFLAGS EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER SUDO_ASKPASS',
  'what names mean': 'HOSTALIASES RES_OPTIONS LOCALDOMAIN RESOLV_HOST_CONF',
  'other proxies': 'ALL_PROXY ftp_proxy',
  clouds:
    'AWS_PROFILE AWS_CONFIG_FILE AZURE_CLIENT_ID ARM_CLIENT_ID ARM_SUBSCRIPTION_ID MSI_ENDPOINT IDENTITY_ENDPOINT ' +
    'GCP_PROJECT GOOGLE_CLOUD_PROJECT GCLOUD_PROJECT CLOUDSDK_CONFIG',
  engines: 'KUBECONFIG DOCKER_HOST CONTAINER_HOST CONTAINERD_ADDRESS PODMAN_USERNS',
  agents: 'VAULT_ADDR SSH_AGENT_PID SSH_ASKPASS GPG_AGENT_INFO GNUPGHOME',
  'a session':
    'DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY ICEAUTHORITY PULSE_SERVER KRB5CCNAME',
  'Sallyport itself': 'SALLYPORT_STATE',
  tokens: 'GH_TOKEN GITHUB_TOKEN TOKENS XTOKEN',
  secrets: 'CLIENT_SECRET CLIENTSECRET',
  passwords: 'DB_PASSWORD X_PASSWD X_PASSPHRASE X_PASSCODE X_PASS PGPASSFILE X_PWD',
  keys: 'X_KEY X_KEYS X_KEY_ID OPENAIAPIKEY MYPRIVATEKEY MYACCESSKEY',
  credentials: 'X_CREDENTIALS X_AUTH AUTHORIZATION COOKIE_JAR NETRC X_JWT X_PAT',
  'addresses with passwords': 'DATABASE_URL REDIS_URI SENTRY_DSN X_CONNECTION_STRING WEBHOOK_URLS',
}

const asksFor = (label: string, word: Word, wanted: readonly Wanted[]): Attempt =>
  seen(
    label,
    async ({ launched }) => {
      if (launched === null) return 'everything'
      const given: string[] = []
      for (const it of wanted) {
        const code = await refusalOf(launched.lab, word, it)
        if (code !== 'ERR_ENVIRONMENT_REFUSED') given.push(`${it.name} ${code}`.trim())
      }
      return given.join(', ')
    },
    (text) => (text === '' ? null : `given: ${text}`),
  )

const asks = (label: string, word: Word, names: string): Attempt =>
  asksFor(
    label,
    word,
    names.split(' ').map((name) => ({ name, value: 'x', reason: null })),
  )

/** Beyond what one variable may hold, bytes. */
const tooLong = 65_537

const odd: readonly Wanted[] = ['x\0y', 'x'.repeat(tooLong)].map((value) => ({
  name: 'VERIFY',
  value,
  reason: null,
}))

const ofTheSupervisor = Object.keys(proxyVariables).map((name) => ({
  name,
  value: 'x',
  reason: 'a verification',
}))

const ofAny = 'LD_PRELOAD NODE_OPTIONS SSH_AUTH_SOCK AWS_SECRET_ACCESS_KEY GITHUB_TOKEN'

export const variableProbes: readonly Probe[] = [
  {
    id: 'environment.families',
    number: 145,
    group: 'environment',
    protects:
      'No variable that loads code or carries a secret is given to a server, whoever lists it, without a written reason.',
    control: 'variables',
    trial: ({ spec }) => ({
      expected: 'a refusal of the launch for each',
      attempts: [
        ...Object.entries(families).map(([what, names]) => asks(`${what}, by its entry`, 'entry', names)),
        asks('of some families, by its profile', 'set', ofAny),
        asks('of some families, passed on', 'pass', ofAny),
        asks('what is no name', 'entry', 'A=B 1A A-B A\u00e9'),
        asksFor('a value with a NUL, and one that is too long', 'entry', odd),
        ...(spec.network.mode === 'none'
          ? []
          : [asksFor('what the supervisor sets itself, with a reason', 'entry', ofTheSupervisor)]),
        asks('of this machine, passed on', 'pass', 'HOME USER TERM TMPDIR'),
      ],
      outside: [
        finds(
          ['environment'],
          (text) => (text.includes('AWS_SECRET_ACCESS_KEY=') ? 'AWS_SECRET_ACCESS_KEY is inherited' : null),
          'variables of a process of this machine',
        ),
      ],
    }),
  },
]

/** Every name of a family that is asked for. */
export const familyNames: readonly string[] = [...Object.values(families), ofAny].flatMap((names) =>
  names.split(' '),
)
