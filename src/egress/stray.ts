// What is whole when it is judged, looked through for placeholders: names, and heads that go nowhere.
import type { EgressEndpoint, Screen } from '../schema/egress.ts'
import { placeholderElsewhere, Refusal } from './refusal.ts'

/** Throws placeholder-elsewhere where one is in the text. */
export function refuseStray(screen: Screen | null, text: string, target: EgressEndpoint): void {
  if (screen !== null && text !== '' && !screen.text(text, target)) throw new Refusal(placeholderElsewhere)
}
