// How Sallyport introduces itself to a server, in either era.

export const modernVersion = '2026-07-28'
/** Which version a request is of; each says so in its `_meta` */
export const versionKey = 'io.modelcontextprotocol/protocolVersion'
/** What whoever speaks can do; each request says so in its `_meta` */
export const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'

/** Who speaks when no host does. */
export const clientInfo = { name: 'sallyport', version: '1' } as const

/** The parameters of a request in the later era: every one says who speaks, and which version. */
export function inModernDress(params: string): string {
  const meta = JSON.stringify({
    [versionKey]: modernVersion,
    [capabilitiesKey]: {},
    'io.modelcontextprotocol/clientInfo': clientInfo,
  })
  const rest = params.slice(1).trimStart()
  return `{"_meta":${meta}${rest.startsWith('}') ? '' : ','}${rest}`
}
