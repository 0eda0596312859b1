// How the ledger names one tool of one server.
let lastServer = ''
let lastTool = ''
let lastKey = '/'

/** The text under which a tool is known: one text for as long as it is asked for, which is hashed once. */
export function toolKey(server: string, tool: string): string {
  if (server !== lastServer || tool !== lastTool) {
    lastServer = server
    lastTool = tool
    lastKey = `${server}/${tool}`
  }
  return lastKey
}
