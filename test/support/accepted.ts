// A surface as the journal records that it was accepted, for tests of what stands on that.
import { draftDeclaration, surfaceDigest } from '../../src/call/declaration.ts'

/** The body of a record that accepts one tool of a server, as version 1 of both. */
export const acceptedBody = (server: string, name: string) => ({
  server,
  serverVersion: '1',
  codeDigest: 'c',
  declarationVersion: 1,
  tools: [{ declaration: draftDeclaration({ name }), surfaceDigest: surfaceDigest({ name }) }],
  restDigest: 'r',
  leftOut: [],
  acceptedBy: '0',
})
