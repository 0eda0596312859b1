// What a program may import: the typed client, the errors, and the words of the protocol.
export { connect } from './client/client.ts'
export type { Client, ConnectOptions } from './client/client.ts'
export { catalogue, SallyportError } from './errors.ts'
export type { ErrorCode, ErrorDetails } from './errors.ts'
export type { PendingApproval, SettledApproval, StandingApproval } from './rpc/approvals.ts'
export type {
  AuditAnchor,
  AuditRecord,
  HoldView,
  PermitView,
  ToolDetail,
  ToolView,
  TrustView,
} from './rpc/governed.ts'
export { protocolId } from './rpc/protocol.ts'
export type {
  CallResult,
  Hello,
  HostMethods,
  InstanceState,
  InstanceView,
  OperatorMethods,
  Principal,
  SallyportEvent,
  ServerDetail,
  ServerView,
} from './rpc/protocol.ts'
