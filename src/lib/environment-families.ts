// The variables that no server is given by accident: families that load code, and families that carry secrets.
// One list, read by the config, by `profile lint` and by the launch, so that the three never disagree.

interface Family {
  /** The family as people read it */
  readonly label: string
  /** What a variable of it does to the process that has it */
  readonly why: string
  /** Matched against the name in upper case */
  readonly pattern: RegExp
}

const family = (label: string, pattern: RegExp, why: string): Family => ({ label, pattern, why })

const loadsCode: readonly Family[] = [
  family('LD_*', /^LD_/, 'the dynamic linker loads code from it'),
  family('DYLD_*', /^DYLD_/, 'the dynamic linker loads code from it'),
  family(
    'GCONV_PATH, LOCPATH, GLIBC_TUNABLES',
    /^(GCONV_PATH|LOCPATH|NLSPATH|GLIBC_TUNABLES|MALLOC_.*)$/,
    'the C library loads code or changes its defences by it',
  ),
  family(
    'BASH_FUNC_*, BASH_*, ENV',
    /^(BASH_.*|BASHOPTS|ENV|SHELLOPTS|PROMPT_COMMAND|PS4|ZDOTDIR|FPATH)$/,
    'a shell runs code from it',
  ),
  family('CDPATH, GLOBIGNORE, IFS', /^(CDPATH|GLOBIGNORE|IFS)$/, 'it changes what a shell script means'),
  family('PATH', /^PATH$/, 'it decides which programs run; the sandbox sets its own'),
  family('PYTHON*', /^_?PYTHON/, 'the interpreter loads code from it'),
  family('RUBY*, GEM_*, BUNDLE_*', /^(RUBY|GEM_|BUNDLE_|BUNDLER_)/, 'the interpreter loads code from it'),
  family(
    'NODE_*',
    /^(NODE_|ELECTRON_RUN_AS_NODE$)/,
    'the interpreter loads code or trusts certificates by it',
  ),
  family('BUN_*, DENO_*', /^(BUN_|DENO_)/, 'the interpreter loads code or settings from it'),
  family('PERL*', /^PERL/, 'the interpreter loads code from it'),
  family('LUA_*, PHP*, TCL*', /^(LUA_|PHP_?|PHPRC$|TCL)/, 'the interpreter loads code from it'),
  family(
    'JAVA_*, JDK_*, CLASSPATH',
    /^(_?JAVA_|JDK_|CLASSPATH$|MAVEN_|GRADLE_)/,
    'the virtual machine loads code or options from it',
  ),
  family('DOTNET_*, COR_*', /^(DOTNET_|COMPLUS_|CORECLR_|COR_)/, 'the runtime loads code from it'),
  family('ERL_*', /^(ERL_|ELIXIR_)/, 'the runtime loads code or options from it'),
  family('OPENSSL_*', /^OPENSSL_/, 'the library loads engines and settings from it'),
  family(
    'SSL_CERT_*, *_CA_BUNDLE',
    /^(SSL_CERT_(FILE|DIR)|.*_CA_(BUNDLE|CERTS?)|CURL_HOME)$/,
    'it decides which certificates are trusted',
  ),
  family('GIT_*', /^GIT_/, 'git runs programs that it names'),
  family(
    'NPM_*, YARN_*, PNPM_*, COREPACK_*',
    /^(NPM_|YARN_|PNPM_|COREPACK_)/,
    'the package manager takes registries, scripts and tokens from it',
  ),
  family(
    'UV_*, PIP_*, PIPX_*, POETRY_*, CONDA_*, VIRTUAL_ENV',
    /^(UV_|PIP_|PIPX_|POETRY_|CONDA_|VIRTUAL_ENV$)/,
    'the package manager takes indexes and tokens from it',
  ),
  family(
    'CARGO_*, RUST*, GO*',
    /^(CARGO_|RUSTC_|RUSTFLAGS$|RUSTDOC|GOFLAGS$|GOPROXY$|GOENV$|GOPATH$|GOROOT$|GOTOOLCHAIN$|GONOSUMDB$|GOPRIVATE$|CGO_)/,
    'the tool chain runs programs or takes registries from it',
  ),
  family(
    'MAKEFLAGS, EDITOR, PAGER, LESSOPEN, BROWSER',
    /^(MAKEFLAGS|MFLAGS|EDITOR|VISUAL|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|SUDO_ASKPASS)$/,
    'other programs run what it names',
  ),
  family(
    'HOSTALIASES, RES_OPTIONS, LOCALDOMAIN',
    /^(HOSTALIASES|RES_OPTIONS|LOCALDOMAIN|RESOLV_.*)$/,
    'it changes which host a name means',
  ),
  family('*_PROXY', /_PROXY$/, 'it sends traffic elsewhere; the supervisor sets its own'),
]

const carriesSecrets: readonly Family[] = [
  family('AWS_*', /^AWS_/, 'it carries or locates cloud credentials'),
  family(
    'AZURE_*, ARM_*, MSI_*',
    /^(AZURE_|ARM_CLIENT_|ARM_SUBSCRIPTION|MSI_|IDENTITY_ENDPOINT$)/,
    'it carries or locates cloud credentials',
  ),
  family(
    'GCP_*, GOOGLE_*, CLOUDSDK_*',
    /^(GCP_|GOOGLE_|GCLOUD_|CLOUDSDK_)/,
    'it carries or locates cloud credentials',
  ),
  family(
    'KUBE*, DOCKER_*, CONTAINER_*',
    /^(KUBE|DOCKER_|CONTAINER_HOST$|CONTAINERD_|PODMAN_)/,
    'it carries or locates an engine’s credentials or socket',
  ),
  family('VAULT_*', /^VAULT_/, 'it carries or locates secrets'),
  family('SSH_*, GPG_*', /^(SSH_|GPG_|GNUPGHOME$)/, 'it leads to an agent that signs for the user'),
  family(
    'DBUS_*, XDG_RUNTIME_DIR, DISPLAY',
    /^(DBUS_|XDG_RUNTIME_DIR$|DISPLAY$|WAYLAND_DISPLAY$|XAUTHORITY$|ICEAUTHORITY$|PULSE_SERVER$|KRB5)/,
    'it leads to sockets of the user’s session',
  ),
  family('SALLYPORT_*', /^SALLYPORT_/, 'it steers Sallyport itself'),
  family('*TOKEN*', /TOKEN/, 'its name says that it is a secret'),
  family('*SECRET*', /SECRET/, 'its name says that it is a secret'),
  family(
    '*PASSWORD*, *_PASS, *_PWD',
    /PASSWORD|PASSWD|PASSPHRASE|PASSCODE|(^|_)PASS(_|FILE$|$)|^PGPASS|_PWD$/,
    'its name says that it is a secret',
  ),
  family(
    '*_KEY',
    /(^|_)KEYS?(_|$)|(API|ACCESS|PRIVATE|SIGNING|ENCRYPTION|MASTER|AUTH|SSH|SERVICE|ACCOUNT)_?KEY/,
    'its name says that it is a secret',
  ),
  family(
    '*CREDENTIAL*, *_AUTH',
    /CREDENTIAL|(^|_)AUTH(_|$)|AUTHORIZATION|COOKIE|NETRC|(^|_)JWT(_|$)|(^|_)PAT$/,
    'its name says that it is a secret',
  ),
  family(
    'DATABASE_URL, REDIS_URL, *_DSN, *_CONNECTION_STRING',
    /((DATABASE|DB|REDIS|POSTGRES(QL)?|PG|MYSQL|MARIADB|MONGO(DB)?|AMQP|RABBITMQ|CLICKHOUSE|ELASTIC(SEARCH)?|CACHE|BROKER|QUEUE|WEBHOOK)_(URL|URI)S?|(^|_)DSN|CONN(ECTION)?_?STR(ING)?)$/,
    'such addresses carry passwords',
  ),
]

const families: readonly Family[] = [...loadsCode, ...carriesSecrets]

/** Members of a family that neither load code nor carry a secret, exactly as spelt here. */
const harmless: ReadonlySet<string> = new Set([
  'AWS_DEFAULT_REGION',
  'AWS_REGION',
  'NODE_ENV',
  'NODE_NO_WARNINGS',
  'PYTHONDONTWRITEBYTECODE',
  'PYTHONHASHSEED',
  'PYTHONIOENCODING',
  'PYTHONUNBUFFERED',
  'PYTHONUTF8',
])

/**
 * Says why a variable may not be configured without an override: the family it belongs to and what that does,
 * in one phrase, or null where nothing is against it. Case does not matter, except for the few harmless members.
 */
export function refusedFamily(name: string): string | null {
  if (harmless.has(name)) return null
  const upper = name.toUpperCase()
  const found = families.find(({ pattern }) => pattern.test(upper))
  return found === undefined ? null : `${found.label}: ${found.why}`
}
