// What the control protocol says of declarations: what is drafted for the operator to read, and what a yes came to.
import type { Declaration } from '../schema/types.gen.ts'

/** A declaration drafted from a confined run. */
export interface Draft {
  readonly server: string
  readonly version: string
  readonly code_digest: string
  /** The version that it says it is itself, which an acceptance covers, too; null where it says none */
  readonly said_version: string | null
  /** How the server introduces itself to a model, which an acceptance covers: at most 2048 characters; null for no words */
  readonly instructions: string | null
  readonly declaration: Declaration
  /** Tool -> field -> what the server said of it, which is a claim; `name` is there where hosts have a tool of that name */
  readonly claims: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** What an acceptance came to. */
export interface Acceptance {
  readonly server: string
  readonly declaration_version: number
  readonly accepted: readonly string[]
  /** Listed by the server and not accepted */
  readonly left_out: readonly string[]
  /** Accepted under a name by which hosts know tools of their own, such as `bash` */
  readonly borrowed: readonly string[]
}
