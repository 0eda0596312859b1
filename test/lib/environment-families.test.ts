// Which variables are refused without an override, in any case, and which ordinary ones are not.
import { describe, expect, it } from 'vitest'
import { refusedFamily } from '../../src/lib/environment-families.ts'

const secrets = [
  'ZEPH_CLAUDE_API_KEY ZEPH_OPENAI_API_KEY ZEPH_TELEGRAM_TOKEN ZEPH_DISCORD_TOKEN ZEPH_SLACK_BOT_TOKEN',
  'ZEPH_SLACK_SIGNING_SECRET ZEPH_A2A_AUTH_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_CLIENT_SECRET',
  'GCP_SERVICE_ACCOUNT_KEY GOOGLE_APPLICATION_CREDENTIALS DATABASE_URL REDIS_URL GITHUB_TOKEN GITLAB_TOKEN',
  'NPM_TOKEN CARGO_REGISTRY_TOKEN DOCKER_PASSWORD VAULT_TOKEN SSH_AUTH_SOCK AWS_ACCESS_KEY_ID AWS_PROFILE',
  'PGPASSWORD PGPASSFILE MYSQL_PWD NETRC KUBECONFIG DOCKER_HOST DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR',
  'SENTRY_DSN AZURE_STORAGE_CONNECTION_STRING MONGODB_URI OPENAI_API_KEY OPENAIAPIKEY DB_PASS SESSION_COOKIE',
].flatMap((line) => line.split(' '))

const loaders = [
  'LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT LD_PROFILE DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH DYLD_FRAMEWORK_PATH',
  'DYLD_FALLBACK_LIBRARY_PATH BASH_ENV ENV CDPATH GLOBIGNORE PYTHONPATH PYTHONSTARTUP RUBYLIB RUBYOPT',
  'NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT JAVA_TOOL_OPTIONS BASH_FUNC_ls%% BASH_FUNC_x PYTHONHOME',
  'PYTHONUSERBASE PYTHONBREAKPOINT PYTHONINSPECT PYTHONWARNINGS OPENSSL_CONF GIT_SSH_COMMAND GIT_ASKPASS',
  'CLASSPATH SSL_CERT_FILE HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY UV_INDEX_URL NPM_CONFIG_REGISTRY PATH',
  'NODE_EXTRA_CA_CERTS _JAVA_OPTIONS JDK_JAVA_OPTIONS GCONV_PATH GLIBC_TUNABLES PS4 PROMPT_COMMAND EDITOR',
  'ELECTRON_RUN_AS_NODE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HOSTALIASES SALLYPORT_CONFIG',
].flatMap((line) => line.split(' '))

const ordinary = [
  'LANG LC_ALL LC_CTYPE TZ TERM LOG_LEVEL REGION HOME USER TMPDIR SHELL PORT HOST DEBUG NO_COLOR FORCE_COLOR',
  'NODE_ENV NODE_NO_WARNINGS PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE AWS_REGION KEYBOARD MONKEY COMPASS',
  'ENVIRONMENT BYPASS_CACHE MEMORY_FILE_PATH AUTHOR BASE_URL PWD OLDPWD PASSIVE',
].flatMap((line) => line.split(' '))

describe('refused families', () => {
  it.each(secrets)('%s is refused as a carrier of secrets', (name) => {
    expect(refusedFamily(name)).toMatch(/: /)
  })

  it.each(loaders)('%s is refused as a loader of code', (name) => {
    expect(refusedFamily(name)).toMatch(/: /)
  })

  it.each([...secrets, ...loaders])('%s is refused in lower and mixed case', (name) => {
    expect(refusedFamily(name.toLowerCase())).not.toBeNull()
    expect(refusedFamily(name.charAt(0) + name.slice(1).toLowerCase())).not.toBeNull()
  })

  it.each(ordinary)('%s is an ordinary variable', (name) => {
    expect(refusedFamily(name)).toBeNull()
  })

  it('says which family and why', () => {
    expect(refusedFamily('ld_preload')).toBe('LD_*: the dynamic linker loads code from it')
  })
})
