// Looking a name up in a record without meeting what every object has by birth.

/** Returns the record's own value for a name, or undefined: `constructor` and `__proto__` are names like others. */
export const own = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined
