// node:http, and no more than it: an `import` reads each of its exports, of which one loads Node's whole fetch, 11 MiB and 15 ms.

/** The module `node:http`. Its types are imported from there. */
export const http = process.getBuiltinModule('node:http')
