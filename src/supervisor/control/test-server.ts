// `servers/test`: one start, handshake, listing, comparison and stop of a server, apart from everything that runs.
import { SallyportError } from '../../errors.ts'
import type { OperatorMethods } from '../../rpc/protocol.ts'
import type { Observation } from '../../schema/governor.ts'
import { ToolSurface } from '../client/tool-surface.ts'
import type { Ports } from '../ports.ts'
import { counted } from '../../lib/counted.ts'
import { LoneProcess, type LoneProcessOptions } from './lone-process.ts'

type Report = OperatorMethods['servers/test']['result']
type Step = Report['steps'][number]

/** Takes the steps in order; the first that fails ends the test, except that what was started is always stopped. */
export async function testServer(options: LoneProcessOptions & { readonly ports: Ports }): Promise<Report> {
  const { server, ports } = options
  const { governor, settings } = ports
  const steps: Step[] = []
  const lone = new LoneProcess(options, 'the test was called off')
  const step = stepsInto(steps, (which, { code }) =>
    spoken.has(which) && its.has(code) && !lone.patience.signal.aborted
      ? `; see sallyport logs ${server.name}`
      : '',
  )
  try {
    const process = await step(
      'launch',
      () => lone.start(),
      ({ initPid }) => `pid ${initPid}`,
    )
    const client = await step(
      'initialize',
      () => lone.introduce(process),
      () => 'answered',
    )
    const instance = lone.instance.id
    let listed: Observation = { server, instance, tools: new Map(), saidVersion: null, rest: null }
    const surface = new ToolSurface({
      server,
      client,
      limit: settings.tools.perServer,
      next: () => 1,
      observe: (seen) => governor.observe((listed = { server, instance, ...seen })),
      shows: () => true, // to nobody
    })
    await step(
      'tools/list',
      () => surface.fetch(lone.patience),
      () => counted(surface.tools.length, 'tool'),
    )
    await step(
      'declaration',
      () => governor.validate(listed),
      (standing) => standing,
    )
  } catch {
    // the step that failed says why
  } finally {
    governor.forget(lone.instance.id)
    await step(
      'stop',
      () => lone.stop('the test is over'),
      () => lone.instance.reason ?? 'nothing was left',
    ).catch(() => undefined)
  }
  return { ok: steps.every(({ ok }) => ok), steps }
}

/** The steps that a server has its part in, and the failures that are its own, of which its stderr may say more */
const spoken: ReadonlySet<string> = new Set(['initialize', 'tools/list'])
const its: ReadonlySet<string> = new Set(['ERR_SERVER_UNAVAILABLE', 'ERR_INITIALIZE_TIMEOUT'])

/** Takes a step and writes down how it went, and of a failure `more` behind the reason; fails as the step does. */
const stepsInto =
  (steps: Step[], more: (step: string, error: SallyportError) => string) =>
  async <T>(step: string, run: () => Promise<T>, describe: (value: T) => string): Promise<T> => {
    const began = performance.now()
    const passed = (): number => Math.round(performance.now() - began)
    try {
      const value = await run()
      steps.push({ step, ok: true, detail: describe(value), ms: passed() })
      return value
    } catch (thrown) {
      const error = SallyportError.from(thrown)
      steps.push({ step, ok: false, detail: `${whyNot(error)}${more(step, error)}`, ms: passed() })
      throw thrown
    }
  }

/** Only operators test: they are told of the same failure what hosts are not. */
const whyNot = (error: SallyportError): string => {
  const { cause } = error
  const isTold = cause instanceof SallyportError && cause.code === error.code
  const { message, details } = isTold ? cause : error
  return typeof details['reason'] === 'string' ? details['reason'] : message
}
