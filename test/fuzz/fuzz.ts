// Fuzz: hostile bytes for every parser, guided by what they reach, from the corpus in the repository.
// Run: npm run fuzz -- [--seconds N] [--seed S] [--only NAME]… [--keep]
import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Chance } from '../chaos/chance.ts'
import { asked, misused, secondsOf } from '../support/asked.ts'
import { root } from '../support/source.ts'
import { tempDir } from '../support/temp-dir.ts'
import { escaped, readCorpus, writeCorpus } from './corpus.ts'
import { search } from './guide.ts'
import { engineLack, harnessAt, inputsIn, make, ran, unpack } from './native.ts'
import { type Harness, harnesses, targets } from './targets.ts'

const names = [...harnesses, ...targets].map(({ name }) => name)
const { values } = asked('fuzz', () =>
  parseArgs({
    options: {
      seconds: { type: 'string', default: '120' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      only: { type: 'string', multiple: true, default: [] },
      keep: { type: 'boolean', default: false },
      inside: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  }),
)
const seconds = asked('fuzz', () => secondsOf(values.seconds))
const unknown = values.only.filter((name) => !names.includes(name))
if (unknown.length > 0) misused('fuzz', `--only ${unknown.join(' ')}: use one of ${names.join(', ')}`)
/** What a target may take beyond its time to start, and to make a finding small */
const graceMs = 60_000

const usage = `npm run fuzz -- [--seconds N] [--seed S] [--only NAME]… [--keep]

  --seconds N  for all parsers together, 120 unless said
  --seed S     what the draws come from; any word, a number of its own unless said
  --only NAME  that parser alone, or those: ${names.join(', ')}
  --keep       adds the inputs that reach something new to test/fuzz/corpus/

Status 0: no findings, 1: at least one, 2: what it is built with is missing, 7: an argument is none. docs/fuzzing.md says what must hold.
`
if (values.help) process.stdout.write(usage)
else process.exitCode = values.inside === undefined ? await all() : await inside(values.inside)

interface Outcome {
  readonly line: string
  readonly finding: { readonly input: Buffer; readonly said: string } | null
}

async function all(): Promise<number> {
  const chosen = names.filter((name) => values.only.length === 0 || values.only.includes(name))
  const lanes = Math.min(availableParallelism(), chosen.length)
  const each = Math.max(1, Math.round((seconds * lanes) / chosen.length))
  const isNative = chosen.some((name) => harnesses.some((it) => it.name === name))
  const lack = isNative ? engineLack() : null
  if (lack !== null) {
    console.error(lack)
    return 2
  }
  console.log(`seed ${values.seed}, ${chosen.length} parsers, ${each} s each, ${lanes} at a time`)
  if (isNative) make(['engine'])
  await using folder = await tempDir()
  const column = Math.max(...chosen.map((name) => name.length))
  let findings = 0
  const waiting = [...chosen]
  const lane = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const harness = harnesses.find((it) => it.name === name)
      const { line, finding } =
        harness === undefined ? await guided(name, each) : await native(harness, each, folder.path)
      console.log(`${name.padEnd(column)} ${line}`)
      if (finding === null) continue
      findings++
      report(name, finding)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  console.log(findings === 0 ? 'no findings' : findings === 1 ? '1 finding' : `${findings} findings`)
  return findings === 0 ? 0 : 1
}

/** Says what was found, and how it becomes a test. */
function report(name: string, { input, said }: NonNullable<Outcome['finding']>): void {
  const folder = join(root, 'dist/.fuzz/findings')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), input)
  console.log(`FINDING in ${name}, ${input.length} bytes, also in dist/.fuzz/findings/${name}`)
  console.log(said.trim().split('\n').slice(0, 40).join('\n'))
  console.log(`mend it; as a line of test/fuzz/corpus/${name}.txt it is tried by the tests from then on:`)
  console.log(escaped(input))
}

async function native({ name, longestBytes }: Harness, each: number, folder: string): Promise<Outcome> {
  const program = harnessAt(folder, name)
  const corpus = unpack(folder, name)
  const met = join(folder, `met-${name}`)
  mkdirSync(met)
  const own = [`-max_len=${longestBytes}`, `-artifact_prefix=${join(folder, `found-${name}-`)}`]
  const seed = new Chance(values.seed).of(name).between(1, 2 ** 31)
  const how = [`-seed=${seed}`, `-max_total_time=${each}`, '-timeout=5', '-use_value_profile=1']
  const { code, stderr } = await ran(
    program,
    [met, corpus, ...own, ...how, '-print_final_stats=1'],
    each * 1000 + graceMs,
  )
  const runs = /number_of_executed_units: (\d+)/.exec(stderr)?.[1] ?? '?'
  const reached = [...stderr.matchAll(/cov: (\d+)/g)].at(-1)?.[1] ?? '?'
  const line = `${runs} runs, ${reached} edges, by libFuzzer`
  if (code !== 0) {
    const [input = Buffer.alloc(0)] = inputsIn(folder, `found-${name}-`)
    return {
      line,
      finding: { input, said: stderr.slice(stderr.search(/==\d+==ERROR|finding:|runtime error/)) },
    }
  }
  if (values.keep) {
    await ran(program, ['-set_cover_merge=1', ...own, corpus, met], graceMs)
    writeCorpus(name, inputsIn(corpus))
  }
  return { line, finding: null }
}

/** In a process of its own: what hangs is ended, and the coverage of one parser is not that of another. */
async function guided(name: string, each: number): Promise<Outcome> {
  const own = [
    fileURLToPath(import.meta.url),
    '--inside',
    name,
    '--seconds',
    String(each),
    '--seed',
    values.seed,
  ]
  const args = values.keep ? [...own, '--keep'] : own
  const { code, stdout, stderr } = await ran(process.execPath, args, each * 1000 + graceMs)
  const [line = '', input = ''] = stdout.split('\n')
  if (code === 0) return { line, finding: null }
  if (line === '' && code !== 'SIGKILL') throw new Error(`${name} did not begin (${code}): ${stderr}`)
  const said = code === 'SIGKILL' ? `it hangs, and will with --only ${name} and this seed` : stderr
  return { line, finding: { input: Buffer.from(input, 'hex'), said } }
}

async function inside(name: string): Promise<number> {
  const target = targets.find((it) => it.name === name)
  if (target === undefined) throw new Error(`${name} is no parser`)
  const { runs, blocks, corpus, finding } = await search(
    target,
    readCorpus(name),
    seconds * 1000,
    new Chance(values.seed).of(name),
  )
  console.log(`${runs} runs, ${blocks} blocks, ${corpus.length} inputs that reach them`)
  if (finding === null) {
    if (values.keep) writeCorpus(name, [...readCorpus(name), ...corpus])
    return 0
  }
  console.log(finding.input.toString('hex'))
  console.error(finding.error)
  return 1
}
