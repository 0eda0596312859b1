// What there is to say of a tool that stands as it was accepted: one object for each tool of one acceptance.
import { type AcceptedSurface, type AcceptedTool, identityOf } from './declaration.ts'
import type { Standing } from './ports.ts'

/** Keeps them for as long as their acceptance is kept. */
export class Standings {
  readonly #known = new WeakMap<AcceptedSurface, Map<string, Standing>>()

  /** `tool` is the surface's own tool of the name `subject`. */
  of(surface: AcceptedSurface, subject: string, tool: AcceptedTool): Standing {
    const ofSurface = this.#known.get(surface) ?? new Map<string, Standing>()
    const known = ofSurface.get(subject)
    if (known !== undefined) return known
    const { declarationVersion } = surface
    const identity = identityOf(surface, subject)
    const standing: Standing = Object.freeze({ state: 'accepted', identity, declarationVersion, tool })
    this.#known.set(surface, ofSurface.set(subject, standing))
    return standing
  }
}
