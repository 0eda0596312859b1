// What is taken out of every record: texts with the shape of a secret.
import { redactShapes } from '../lib/secret-shape.ts'
import type { Redactor } from '../schema/redactor.ts'

/** Takes known shapes of secrets out of JSON texts. Values that a credential source gave are for whoever reads the source. */
export const redactor: Redactor = { redact: redactShapes }
