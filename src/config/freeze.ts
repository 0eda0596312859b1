// Settings that nobody can change after loading, by mistake or otherwise.

/** Freezes a value of plain objects, lists and maps all the way down, and returns it. A map's own entries stay reachable. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const inner of value instanceof Map ? value.values() : Object.values(value)) freeze(inner)
  return value
}
