// The one way to the write side of a server's stdin. Who imports this is a decision; the architecture test has the list.
import type { Writable } from 'node:stream'
import type { SandboxProcess, ServerInput } from '../sandbox/driver.ts'

/** The write side of a running server's stdin; what is written to it was admitted, or is Sallyport's own. */
export const inputOf = ({ stdin }: SandboxProcess): Writable => writeSideOf(stdin)

/** Every driver's input is a stream; its type keeps that from whoever has no business with it. */
const writeSideOf = (input: ServerInput): Writable => input as Writable
