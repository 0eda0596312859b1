// The one holder of secrets: it reads their sources, and knows what was handed out.
import { SallyportError } from '../errors.ts'
import type { Broker, BrokerOptions, InjectionKind, SandboxSecretsRequest } from '../schema/credentials.ts'
import { Placeholders } from './placeholders.ts'
import { createRedactor } from './redactor.ts'
import { SecretsOfSandbox } from './sandbox-secrets.ts'
import { readSecret } from './secret.ts'
import { sourceFailed } from './sources/failure.ts'
import type { Scanner } from './scanner.ts'
import { KnownValues, scannerFor } from './values.ts'

/** After a sandbox its values are looked for as long again, ms: what it said may still be on its way to a log */
export const rememberedMs = 600_000

/** Returns the broker for the configured sources. It keeps no value but those of sandboxes that live, or have just died. */
export const createBroker = (options: BrokerOptions): Broker => {
  const { environment, uid, initPath } = options
  const stores = new Set<KnownValues>()
  const placeholders = new Placeholders()
  let everywhere: Scanner | null | undefined
  const changed = (): void => void (everywhere = undefined)

  const read = async (
    credential: string,
    kinds: readonly InjectionKind[],
    signal: AbortSignal,
  ): Promise<Buffer> => {
    const { sources } = options // whichever hold by now
    const source = Object.hasOwn(sources, credential) ? sources[credential] : undefined
    if (source === undefined) throw sourceFailed(credential, 'it has no source under `credentials`')
    return readSecret(credential, source, kinds, { environment, uid, initPath }, signal)
  }

  return {
    async probe(injections, { signal }) {
      const kindsOf = (name: string): readonly InjectionKind[] =>
        injections.filter(({ use }) => use === name).map(({ inject }) => inject)
      const names = new Set(injections.map(({ use }) => use))
      const probed = await Promise.allSettled(
        [...names].map(async (name) => void (await read(name, kindsOf(name), signal)).fill(0)),
      )
      const faults = probed.flatMap((it) =>
        it.status === 'rejected' ? [SallyportError.from(it.reason)] : [],
      )
      const [first] = faults
      if (first === undefined) return
      throw new SallyportError(first.code, faults.map(({ message }) => message).join('; '), first.details)
    },
    forSandbox(request: SandboxSecretsRequest) {
      const values = new KnownValues(changed)
      stores.add(values)
      const forget = (): void => {
        values[Symbol.dispose]()
        stores.delete(values)
      }
      const disposed = (): void => {
        values.rest()
        setTimeout(forget, rememberedMs).unref()
      }
      return new SecretsOfSandbox(request, { values, everybody: placeholders, read, disposed })
    },
    redactor: createRedactor(
      () => (everywhere ??= scannerFor([...stores].flatMap((store) => store.needles))),
    ),
  }
}
