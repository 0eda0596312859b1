// One run: servers by steps, each with a rest and a load, then all of them under a steady load.
import { setTimeout as delay } from 'node:timers/promises'
import { median, quantile } from '../bench/figures.ts'
import { Undoing } from '../support/broken-off.ts'
import { eventually } from '../support/eventually.ts'
import { type Called, Stage } from './stage.ts'
import { type Beside, type Second, Watch } from './watch.ts'

export interface Wanted {
  readonly servers: number
  readonly hosts: number
  /** How long the steady load lasts */
  readonly seconds: number
  /** Calls a second of each host */
  readonly rate: number
  /** A module that the daemon is given beside its own */
  readonly load: string | null
}

/** What some calls took, from the moment at which each was due; ms. NaN of none. */
export interface Latency {
  readonly calls: number
  readonly errors: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
  /** How late the hosts' own process was for one in a hundred: part of what is told above, and not the daemon's */
  readonly hostsLate: number
}

/** What is there at one moment, while nobody calls. */
export interface Standing extends Beside {
  /** What lives in the daemon once all garbage is collected */
  readonly livingMib: number
  readonly rssMib: number
  readonly descriptors: number
}

export interface Step {
  readonly servers: number
  readonly hosts: number
  /** Of those that this step brought, from the connection until the tools were listed, median, ms */
  readonly launchMs: number
  /** CPU of the daemon while nobody calls, % of one processor */
  readonly restCpu: number
  /** CPU of the daemon for a call, beyond what it uses at rest */
  readonly callUs: number
  readonly latency: Latency
  readonly standing: Standing
}

export interface Outcome {
  readonly wanted: Wanted
  readonly steps: readonly Step[]
  /** Of the steady load, whose beginning is 0 */
  readonly seconds: readonly Second[]
  /** Of the calls that were due in each second of it */
  readonly calls: readonly (Latency & { readonly at: number })[]
  readonly beside: readonly Beside[]
  /** One when it began, and one after each fifth of it */
  readonly standing: readonly Standing[]
  readonly steady: Latency
}

/** How many parts the steady load has: between them nobody calls, and what lives is counted. */
const parts = 5
const censusEverySeconds = 10

/** Runs it all; `say` is told of each step. */
export async function run(wanted: Wanted, say: (line: string) => void): Promise<Outcome> {
  await using undoing = new Undoing()
  const stage = await undoing.starting(() => Stage.open(wanted.servers, wanted.load))
  using watch = new Watch(stage)
  await settled(watch)
  const stepSeconds = Math.min(10, Math.max(0.5, wanted.seconds / 10))
  const steps: Step[] = []
  for (const servers of stepsTo(wanted.servers)) {
    const step = await grow(stage, watch, wanted, servers, stepSeconds)
    steps.push(step)
    say(stepText(step))
  }
  const rate = wanted.hosts * wanted.rate
  const began = watch.mark().us
  const standing = [await stands(stage, watch)]
  const byPart: (readonly Called[])[] = []
  const timer = setInterval(() => watch.census(), censusEverySeconds * 1000)
  try {
    for (let part = 1; part <= parts; part++) {
      const found = await stage.hosts.call(rate, wanted.seconds / parts)
      byPart.push(found)
      standing.push(await stands(stage, watch))
      say(standingText(part, latencyOf(found), standing.at(-1)))
    }
  } finally {
    clearInterval(timer)
  }
  const called = byPart.flat()
  const offset = watch.since(began)
  const bySecond = Map.groupBy(called, ({ dueUs }) => Math.floor((dueUs - began) / 1e6))
  return {
    wanted,
    steps,
    seconds: watch.seconds
      .map((second) => ({ ...second, at: second.at - offset }))
      .filter(({ at }) => at > 0),
    calls: [...bySecond].map(([at, due]) => ({ at, ...latencyOf(due) })),
    beside: watch.beside.map((it) => ({ ...it, at: it.at - offset })).filter(({ at }) => at > 0),
    standing: standing.map((it) => ({ ...it, at: it.at - offset })),
    steady: latencyOf(called),
  }
}

/** Until its start is behind it: a second in which it does next to nothing. */
async function settled(watch: Watch): Promise<void> {
  const isIdle = ({ cpu }: Second): boolean => cpu < 3
  await eventually(() => watch.seconds.some(isIdle), 60_000)
}

async function grow(
  stage: Stage,
  watch: Watch,
  wanted: Wanted,
  servers: number,
  seconds: number,
): Promise<Step> {
  const launches = await stage.hosts.up(servers)
  const hosts = Math.max(1, Math.round((wanted.hosts * servers) / wanted.servers))
  await stage.livingMib() // what the launches left is not collected in the rest that is measured
  const resting = watch.mark()
  await delay(seconds * 1000)
  const rested = watch.mark()
  const called = await stage.hosts.call(hosts * wanted.rate, seconds)
  const ended = watch.mark()
  const restCpu = ((rested.daemonUs - resting.daemonUs) / (rested.us - resting.us)) * 100
  const calling = ended.daemonUs - rested.daemonUs - ((ended.us - rested.us) * restCpu) / 100
  return {
    servers,
    hosts,
    launchMs: median(launches),
    restCpu,
    callUs: called.length === 0 ? Number.NaN : calling / called.length,
    latency: latencyOf(called),
    standing: await stands(stage, watch),
  }
}

async function stands(stage: Stage, watch: Watch): Promise<Standing> {
  const livingMib = await stage.livingMib()
  return { ...watch.census(), livingMib, rssMib: watch.rssMib, descriptors: watch.descriptors }
}

/** 1, 10, 50, 100, 200 and so on, and what is wanted in the end. */
const stepsTo = (servers: number): readonly number[] => [
  ...[1, 10, 50, 100, 200, 500].filter((it) => it < servers),
  servers,
]

function latencyOf(called: readonly Called[]): Latency {
  const taken = called.flatMap(({ takenUs }) => (takenUs === null ? [] : [takenUs / 1000]))
  const late = called.map(({ lateUs }) => lateUs / 1000)
  return {
    calls: called.length,
    errors: called.filter(({ isOk }) => !isOk).length,
    p50: median(taken),
    p95: quantile(taken, 0.95),
    p99: quantile(taken, 0.99),
    max: quantile(taken, 1),
    hostsLate: quantile(late, 0.99),
  }
}

const notMeasured = 'not measured'
const ms = (value: number): string => value.toFixed(value < 10 ? 2 : 0)

function latencyWords({ p50, p95, p99, max, errors }: Latency): string {
  const latency = `p50 ${ms(p50)} p95 ${ms(p95)} p99 ${ms(p99)} max ${ms(max)} ms`
  return `${Number.isNaN(p50) ? `latency ${notMeasured}` : latency}, ${errors} errors`
}

function stepText({ servers, hosts, launchMs, restCpu, callUs, latency, standing }: Step): string {
  const cpu = Number.isNaN(callUs) ? `CPU of a call ${notMeasured}` : `${Math.round(callUs)} µs CPU a call`
  return (
    `${String(servers).padStart(4)} servers, ${hosts} hosts: launch ${ms(launchMs)} ms; at rest ${restCpu.toFixed(1)} % CPU; ` +
    `${cpu}; ${latencyWords(latency)}; ` +
    standingWords(standing)
  )
}

function standingText(part: number, latency: Latency, standing?: Standing): string {
  const words = `${latency.calls} calls, ${latencyWords(latency)}`
  return `steady ${part}/${parts}: ${words}; ${standing === undefined ? '' : standingWords(standing)}`
}

const standingWords = ({ livingMib, rssMib, descriptors, processes, pssMib }: Standing): string =>
  `living ${livingMib.toFixed(2)}, RSS ${rssMib.toFixed(0)}, beside ${pssMib.toFixed(1)} MiB PSS in ${processes} processes; ${descriptors} descriptors`
