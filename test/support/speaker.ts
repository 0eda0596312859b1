// What each request of 2026-07-28 says in its `_meta` of who sends it.

/** The least that is said: version and capabilities. */
export const speaker = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}
