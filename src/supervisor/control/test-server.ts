// `servers/test`: one start, handshake, listing and stop of a server, apart from everything that runs.
import { SallyportError } from '../../errors.ts'
import type { OperatorMethods } from '../../rpc/protocol.ts'
import type { ServerSettings } from '../../schema/settings.ts'
import { Instance } from '../instance/instance.ts'
import type { LogRing } from '../instance/log-ring.ts'
import { McpClient } from '../client/mcp-client.ts'
import type { Ports } from '../ports.ts'
import { ToolSurface } from '../client/tool-surface.ts'

type Report = OperatorMethods['servers/test']['result']

interface Parts {
  readonly server: ServerSettings
  readonly principal: string
  readonly logs: LogRing
  readonly ports: Ports
  readonly signal: AbortSignal
}

/** Takes the steps in order; the first that fails ends the test, except that what was started is always stopped. */
export async function testServer({ server, principal, logs, ports, signal }: Parts): Promise<Report> {
  const steps: Report['steps'][number][] = []
  const step = async <T>(name: string, run: () => Promise<T>, describe: (value: T) => string): Promise<T> => {
    const began = performance.now()
    const passed = (): number => Math.round(performance.now() - began)
    try {
      const value = await run()
      steps.push({ step: name, ok: true, detail: describe(value), ms: passed() })
      return value
    } catch (thrown) {
      const error = SallyportError.from(thrown)
      // Only operators test: they are told of the same failure what hosts are not.
      const { cause } = error
      const isTold = cause instanceof SallyportError && cause.code === error.code
      const { message, details } = isTold ? cause : error
      const detail = typeof details['reason'] === 'string' ? details['reason'] : message
      steps.push({ step: name, ok: false, detail, ms: passed() })
      throw thrown
    }
  }

  const { launch, emit, gate, governor, settings } = ports
  const afterLoss = (): { event: 'fail' } => ({ event: 'fail' })
  const instance = new Instance({ server, purpose: 'control', principal, launch, emit, logs, afterLoss })
  const abort = (): void => void instance.stop('the test was called off').catch(() => undefined)
  signal.addEventListener('abort', abort, { once: true })
  try {
    const process = await step(
      'launch',
      () => instance.start(),
      ({ initPid }) => `pid ${initPid}`,
    )
    const client = new McpClient({
      process,
      server,
      gate,
      listChanged: () => undefined,
      note: () => undefined,
    })
    const options = { timeoutMs: server.timeouts.initializeMs, signal }
    await step(
      'initialize',
      () => client.handshake(options),
      () => 'answered',
    )
    instance.ready()
    const surface = new ToolSurface({
      server,
      client,
      limit: settings.tools.perServer,
      next: () => 1,
      observe: (seen) => governor.observe({ server, instance: instance.id, ...seen }),
    })
    await step(
      'tools/list',
      () => surface.fetch(options),
      () => `${surface.tools.length} tools`,
    )
  } catch {
    // the step that failed says why
  } finally {
    signal.removeEventListener('abort', abort)
    governor.forget(instance.id)
    await step(
      'stop',
      () => instance.stop('the test is over'),
      () => instance.reason ?? 'nothing was left',
    ).catch(() => undefined)
  }
  return { ok: steps.every(({ ok }) => ok), steps }
}
