// From a fresh clone to a built Sallyport, then one of its runs: `node .ci/setup.mjs [demo | test | chaos | fuzz | bench | scale | machine] [ARGS]`.
// Runs on the machine's own Node (20 or later) before anything is installed, so it is plain JavaScript with no
// dependency; what it starts runs on the repo's Node. When nothing is missing it only compares two digests.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
} from 'node:fs'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const exitFailed = 1
const exitUsage = 7
const isRoot = process.getuid?.() === 0
/** Who asks what a run takes needs nothing of what it works with */
const asksForHelp = process.argv.includes('--help')
/** Clients as they are, what makes certificates for the hosts that they speak to, and what watches our own C */
const testPrograms = ['curl', 'git', 'openssl', 'python3', 'valgrind']
/** What srt needs beside bubblewrap, which the benchmark stands beside: package and program */
const peerPrograms = { ripgrep: 'rg', socat: 'socat' }
const aptInstall = ['install', '-y', '-qq', '--no-install-recommends']
/** What builds our C so that its fuzzer knows where it has been */
const fuzzPrograms = ['clang', 'make']
/** How long another set-up of this clone is waited for, s: with packages from a slow mirror one takes minutes */
const patienceS = 900

const [verb = 'setup', ...rest] = process.argv.slice(2)
if (!['setup', 'demo', 'test', 'chaos', 'fuzz', 'bench', 'scale', 'machine'].includes(verb))
  stop(exitUsage, `unknown verb ${verb}: use demo, test, chaos, fuzz, bench, scale, machine or nothing`)

checkPlatform()
const turn = takeTurn()
installSystemPackages()
if (verb === 'bench' && !asksForHelp) installPeers()
installNpmPackages()
build()
closeSync(turn)
if (verb === 'setup') process.stdout.write('set-up: all is there\n')
if (verb === 'demo') run(['test/demo/demo.ts', ...rest])
if (verb === 'chaos') run(['test/chaos/chaos.ts', ...rest])
if (verb === 'fuzz') run(['test/fuzz/fuzz.ts', ...rest])
if (verb === 'bench') run(['test/bench/bench.ts', ...rest])
if (verb === 'scale') run(['test/scale/scale.ts', ...rest])
if (verb === 'machine') run(['test/machine/machine.ts', ...rest])
if (verb === 'test')
  run(asksForHelp ? ['node_modules/vitest/vitest.mjs', 'run', ...rest] : ['.ci/tests.ts', ...rest])

function checkPlatform() {
  if (process.platform !== 'linux')
    stop(exitUsage, `${process.platform} is not Linux; Sallyport runs on Linux`)
  if (!['x64', 'arm64'].includes(process.arch)) stop(exitUsage, `${process.arch} is neither x64 nor arm64`)
  if (Number(process.versions.node.split('.')[0]) < 20)
    stop(exitUsage, `Node ${process.versions.node} is too old to set up with; use Node 20 or later`)
}

/** One set-up at a time: two would take packages and builds away under each other. Held until what this gives is closed, or we end. */
function takeTurn() {
  const clone = openSync(root, 'r')
  const flock = (...args) =>
    spawnSync('flock', [...args, '3'], { stdio: ['ignore', 'ignore', 'inherit', clone] }).status
  if (flock('--nonblock') === 1) {
    process.stderr.write('set-up: another one is under way in this clone, waiting for it\n')
    if (flock('--timeout', `${patienceS}`) === 1)
      stop(
        exitFailed,
        `another set-up of ${root} has not ended in ${patienceS} s; end that one, then try again`,
      )
  }
  return clone
}

/**
 * bubblewrap to run with; a compiler, make and the static C library only while there is something to build; programs
 * that tests run, for those alone. Packages are called like their programs.
 */
function installSystemPackages() {
  const triplet = process.arch === 'x64' ? 'x86_64-linux-gnu' : 'aarch64-linux-gnu'
  const libraries = [`/usr/lib/${triplet}/libc.a`, '/usr/lib/libc.a', '/usr/lib64/libc.a']
  const missing = []
  if (!inPath('bwrap')) missing.push('bubblewrap')
  if (!isBuilt()) {
    if (!inPath('cc') && !inPath('gcc')) missing.push('gcc')
    if (!inPath('make')) missing.push('make')
    if (!libraries.some(existsSync)) missing.push('libc6-dev')
  }
  if (verb === 'test' && !asksForHelp) missing.push(...testPrograms.filter((program) => !inPath(program)))
  if (verb === 'fuzz' && !asksForHelp && isNative(rest))
    missing.push(...fuzzPrograms.filter((program) => !inPath(program)), ...fuzzLibraries())
  if (missing.length === 0) return
  if (!isRoot || !inPath('apt-get')) {
    const command = `sudo apt-get install -y ${missing.join(' ')}`
    stop(exitUsage, `${missing.join(', ')} missing; run this, then try again: ${command}`)
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  step(`installing ${missing.join(' ')} with apt-get`, [
    ['apt-get', ['update', '-qq'], env],
    ['apt-get', [...aptInstall, ...missing], env],
  ])
}

/** What a peer of the benchmark needs: where it can't be had, that peer is named as absent, and all else is measured. */
function installPeers() {
  const missing = Object.entries(peerPrograms).flatMap(([name, program]) => (inPath(program) ? [] : [name]))
  if (missing.length === 0 || !isRoot || !inPath('apt-get')) return
  process.stderr.write(`set-up: installing ${missing.join(' ')} with apt-get … `)
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } }
  spawnSync('apt-get', ['update', '-qq'], options)
  const { status } = spawnSync('apt-get', [...aptInstall, ...missing], options)
  process.stderr.write(status === 0 ? 'done\n' : 'failed: srt is not measured\n')
}

/** Whether a parser in C is among those that are to be fuzzed: all are unless some are named, each by a file of its own. */
function isNative(args) {
  const names = args.flatMap((arg, at) =>
    arg === '--only' ? [args[at + 1]] : arg.startsWith('--only=') ? [arg.slice(7)] : [],
  )
  return names.length === 0 || names.some((name) => existsSync(join(root, 'sandbox/fuzz', `${name}.c`)))
}

/** libFuzzer comes apart from clang, which says a bare name of what it has not. */
function fuzzLibraries() {
  const name = `libclang_rt.fuzzer-${process.arch === 'x64' ? 'x86_64' : 'aarch64'}.a`
  const { stdout } = spawnSync('clang', [`-print-file-name=${name}`], { encoding: 'utf8' })
  return stdout && existsSync(stdout.trim()) ? [] : ['libclang-rt-dev']
}

/** What package-lock.json says, unless node_modules holds it already. */
function installNpmPackages() {
  const stamp = join(root, 'node_modules/.sallyport-lock')
  const digest = digestOf(['package-lock.json'])
  if (read(stamp) === digest && existsSync(ownNode())) return
  if (existsSync(ownNode()) && holdsTheLock()) return write(stamp, digest)
  mustBeWritable('node_modules', 'the npm packages')
  const cache = mkdtempSync(join(tmpdir(), 'sallyport-npm-'))
  process.on('exit', () => rmSync(cache, { recursive: true, force: true }))
  const env = { ...process.env, PATH: hostPath(), ...(!isCacheWritable() && { npm_config_cache: cache }) }
  step('installing npm packages', [npm(['ci', '--no-audit', '--no-fund', '--loglevel=error'], env)])
  if (!existsSync(ownNode()))
    stop(
      exitFailed,
      `${ownNode()} is not there after npm ci: were install scripts switched off (ignore-scripts)?`,
    )
  write(stamp, digest)
}

/** Compares what npm wrote about node_modules with package-lock.json; optional packages may be absent. */
function holdsTheLock() {
  const installed = read(join(root, 'node_modules/.package-lock.json'))
  if (!installed) return false
  const there = JSON.parse(installed).packages
  const wanted = Object.entries(JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages)
  return wanted.every(([path, { version, optional }]) =>
    there[path] ? there[path].version === version : path === '' || optional === true,
  )
}

function isCacheWritable() {
  const asked = process.env.npm_config_cache ?? process.env.NPM_CONFIG_CACHE
  const cache = asked ?? (process.env.HOME ? join(process.env.HOME, '.npm') : undefined)
  if (cache === undefined) return false
  try {
    mkdirSync(join(cache, '_cacache/tmp'), { recursive: true })
    accessSync(join(cache, '_cacache/tmp'), constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** `npm run build`, unless the same sources were built here before. */
function build() {
  if (isBuilt()) return
  mustBeWritable('dist', 'the build')
  mustBeWritable('src/schema', 'the generated checks')
  step('building', [npm(['run', '--silent', 'build'], process.env)])
  write(join(root, 'dist/.stamp'), sourceDigest())
}

function isBuilt() {
  const made = ['dist/cli/main.js', `dist/libexec/${process.arch}/sallyport-init`]
  return (
    made.every((path) => existsSync(join(root, path))) && read(join(root, 'dist/.stamp')) === sourceDigest()
  )
}

function sourceDigest() {
  const build = [
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    '.ci/copy-data.mjs',
    '.ci/schema-types.ts',
    '.ci/validators.ts',
    '.ci/bundle.ts',
  ]
  return digestOf(['src', 'sandbox', ...build])
}

/** The npm that runs this script, on the machine's Node: the repo's own goes away while `npm ci` works. */
function npm(args, env) {
  const { npm_execpath: script } = process.env
  if (!script?.endsWith('.js')) return ['npm', args, env]
  const node = hostPath()
    .split(delimiter)
    .map((folder) => join(folder, 'node'))
  return [node.find(existsSync) ?? process.execPath, [script, ...args], env]
}

/** Runs a script on the repo's Node in place of this process: same stdio, same status, same signals. */
function run(args) {
  const child = spawn(ownNode(), args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: ownPath() },
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 143)))
}

/** Shows one line for the whole of `commands`; the first that fails ends the set-up and shows what it printed. */
function step(title, commands) {
  process.stderr.write(`set-up: ${title} … `)
  const started = Date.now()
  for (const [command, args, env] of commands) {
    const { status, error, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: 'utf8' })
    if (status === 0) continue
    process.stderr.write(`failed\n${stdout ?? ''}${stderr ?? ''}`)
    stop(exitFailed, `${[command, ...args].join(' ')}: ${error?.message ?? `exit status ${status}`}`)
  }
  process.stderr.write(`${((Date.now() - started) / 1000).toFixed(1)} s\n`)
}

/** Refuses before a tool fails half-way through a folder that another user left. */
function mustBeWritable(folder, what) {
  const path = join(root, folder)
  const nearest = existsSync(path) ? path : root
  const foreign = [
    nearest,
    ...(existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : []),
  ].find((entry) => !isWritable(entry))
  if (foreign === undefined) return
  const { uid } = statSync(foreign)
  const isMade = nearest === path && folder !== 'src/schema' // which holds sources, too
  const mend = isMade ? `remove it first: sudo rm -rf ${path}` : 'clone into a folder of your own'
  stop(
    exitUsage,
    `${foreign} belongs to uid ${uid} and cannot be written, so ${what} cannot go there; ${mend}`,
  )
}

function isWritable(path) {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function ownNode() {
  return join(root, 'node_modules/node/bin/node')
}

function ownPath() {
  return [join(root, 'node_modules/.bin'), process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin'].join(delimiter)
}

/** PATH without what npm put before it for the sake of this repo. */
function hostPath() {
  const folders = (process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin').split(delimiter)
  return folders.filter((folder) => !folder.startsWith(join(root, 'node_modules'))).join(delimiter)
}

function inPath(program) {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return [...folders, '/usr/bin', '/usr/sbin', '/bin'].some((folder) => existsSync(join(folder, program)))
}

/** SHA-256 over the names and contents of files, folders read in order; objects of the C build do not count. */
function digestOf(paths) {
  const hash = createHash('sha256')
  const add = (path) => {
    if (statSync(join(root, path)).isDirectory())
      for (const name of readdirSync(join(root, path)).toSorted()) add(join(path, name))
    else if (!path.endsWith('.o'))
      hash
        .update(`${path}\0`)
        .update(readFileSync(join(root, path)))
        .update('\0')
  }
  for (const path of paths) add(path)
  return hash.digest('hex')
}

function read(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

function write(path, text) {
  if (isWritable(join(path, '..'))) writeFileSync(path, text)
}

function stop(status, message) {
  process.stderr.write(`set-up: ${message}\n`)
  process.exit(status)
}
