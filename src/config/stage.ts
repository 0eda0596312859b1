// What the top level of a configuration may ask for and this version cannot do: refused by name, never ignored.
import type { Config } from '../schema/types.gen.ts'
import { schemaOf } from '../schema/validate.ts'
import type { Layer } from './layer.ts'
import { issue, type Issue } from './refusal.ts'

/** Settings without a part of this version behind them; at their default they ask for nothing. */
const later: readonly (readonly [keyof Config, ...string[]])[] = [['journal', 'keep_days']]

/** One issue for each top-level setting that differs from its default and has nothing behind it yet. */
export function checkStage({ config, document }: Layer): readonly Issue[] {
  return later.flatMap((path) => {
    const value = path.reduce<unknown>((node, step) => (node as Record<string, unknown>)[step], config)
    const usual = defaultOf(path)
    if (JSON.stringify(value) === JSON.stringify(usual)) return []
    const said = {
      expected: `${JSON.stringify(usual)}, since this version cannot enforce anything else (MP-FH-007)`,
      mend: 'remove it',
    }
    return [issue('ERR_SANDBOX_UNENFORCEABLE', document, path, said)]
  })
}

function defaultOf(path: readonly string[]): unknown {
  let node: Readonly<Record<string, unknown>> = schemaOf('config')
  for (const step of path) node = (node['properties'] as Record<string, Record<string, unknown>>)[step] ?? {}
  return node['default']
}
