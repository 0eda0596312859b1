// Sessions that share a process with its control calls: who is told of what is not the control client's own.
import type { SallyportError } from '../../errors.ts'
import type { Notification, Response } from '../message/envelope.ts'
import type { MessageId } from '../message/message-id.ts'

export interface Guests {
  /** Takes an answer; false when none of them has asked */
  answered(response: Response): boolean
  /** An answer can't be read; false when none of them has asked for it */
  unreadable(id: MessageId | null, error: SallyportError): boolean
  notified(notification: Notification): void
}
