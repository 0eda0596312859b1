// A question that a call asks of operators, as any other but for what a test is about.
import type { ApprovalQuestion } from '../../src/call/ports.ts'
import type { CallId } from '../../src/lib/ids.ts'

export const approvalQuestion: ApprovalQuestion = {
  call: 'c-1' as CallId,
  peer: { uid: 1000, gid: 1000, pid: 1 },
  identity: 'files/write_file@1#1',
  argumentsDigest: 'a'.repeat(64),
  bytesDigest: 'b'.repeat(64),
  repeatDigest: 'd'.repeat(64),
  principal: '1000',
  session: 's-1',
  policyVersion: 'v1',
  trustEpoch: 0,
  text: () => '{"path":"/workspace/a"}',
  reason: 'sallyport.yaml rules[1] asks',
}
