// What a variable is in the sandboxes of a profile, by the order in which a launch sets them.
import { refusedFamily } from '../lib/environment-families.ts'
import { baseVariables, ownNames, proxyVariables } from '../lib/own-variables.ts'
import { own } from '../lib/own.ts'
import type { ProfileSettings } from '../schema/settings.ts'
import { unusable, type Verdict } from './profile-verdict.ts'

/** Explains a variable by its name; ERR_USAGE where it cannot be one. */
export function explainVariable({ environment, network }: ProfileSettings, name: string): Verdict {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name))
    throw unusable('env', name, 'a name of at most 256 letters, digits and _')
  const override = own(environment.override, name)
  const why = override === undefined ? '' : ` (let through: ${override})`
  const base = own(baseVariables, name)
  const proxy = network.mode === 'none' ? undefined : own(proxyVariables, name)
  const index = environment.pass.indexOf(name)
  if (index >= 0 && ownNames.has(name))
    return {
      gets: 'refused',
      because: `the sandbox has its own, ${base}, so no launch under this profile would start; take it out of pass`,
      key: `environment.pass[${index}]`,
    }
  if (Object.hasOwn(environment.set, name)) {
    const key = `environment.set.${name}`
    if (proxy !== undefined)
      return {
        gets: 'refused',
        because: `with an allowlist Sallyport sets it, so no launch under this profile would start; take it out of set`,
        key,
      }
    return { gets: JSON.stringify(environment.set[name]), because: `the profile sets it${why}`, key }
  }
  if (index >= 0)
    return {
      gets: 'passed',
      because: `the daemon’s value, where it has one${base === undefined ? '' : `, and else ${base}`}${why}`,
      key: `environment.pass[${index}]`,
    }
  if (base !== undefined) return { gets: 'own', because: `every sandbox has it: ${base}`, key: null }
  if (proxy !== undefined)
    return { gets: 'own', because: `with an allowlist every sandbox has it: ${proxy}`, key: 'network.mode' }
  const family = refusedFamily(name)
  if (family !== null)
    return {
      gets: 'refused',
      because: `${family}; a server’s entry needs a written override to set it`,
      key: null,
    }
  return {
    gets: 'absent',
    because: 'nothing is inherited; a server’s entry may set it',
    key: 'environment.pass',
  }
}
