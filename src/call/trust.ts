// Trust of one tool of one server: earned by evidence, lost at once, remembered for good.

/** What a tool has earned. */
export type TrustTier = 'untrusted' | 'provisional' | 'trusted'

/** What is known of one (server, tool); nothing passes from one record to another unless policy contaminates. */
export interface TrustRecord {
  readonly tier: TrustTier
  /** Clean outcomes since the last reset */
  readonly evidence: number
  /** 0 to 1; every violation halves what further evidence can win back */
  readonly confidence: number
  /** Raised by every reset; permits and approvals of an earlier epoch are void */
  readonly epoch: number
  /** Violations ever, newest last, at most the last 32 */
  readonly history: readonly Violation[]
}

/** Something that a tool did and had not declared, or was not allowed. */
export interface Violation {
  readonly at: string
  /** MP-FH id */
  readonly failure: string
  readonly detail: string
}

/** Numbers of clean outcomes that a tier takes, from the config. */
export interface TrustThresholds {
  readonly provisionalAfter: number
  readonly trustedAfter: number
}

const historyLength = 32

/** The record of a tool that was never called. */
export const unknownTool: TrustRecord = {
  tier: 'untrusted',
  evidence: 0,
  confidence: 1,
  epoch: 0,
  history: [],
}

/** Counts one call that stayed within its permit and its declaration. */
export function afterSuccess(record: TrustRecord, thresholds: TrustThresholds): TrustRecord {
  const evidence = record.evidence + 1
  const { confidence, epoch, history } = record
  return { tier: tierOf(evidence * confidence, thresholds), evidence, confidence, epoch, history }
}

/** The record under other thresholds; the same object where they change nothing. */
export function measured(record: TrustRecord, thresholds: TrustThresholds): TrustRecord {
  const tier = tierOf(record.evidence * record.confidence, thresholds)
  return tier === record.tier ? record : { ...record, tier }
}

/** Resets a tool at once, without grace: untrusted, half the confidence, a new epoch. */
export function afterViolation(record: TrustRecord, violation: Violation): TrustRecord {
  return {
    tier: 'untrusted',
    evidence: 0,
    confidence: record.confidence / 2,
    epoch: record.epoch + 1,
    history: [...record.history, violation].slice(-historyLength),
  }
}

/** Begins anew on an operator's word: nothing earned, nothing held against it, a new epoch; what happened stays told. */
export function afterReset(record: TrustRecord): TrustRecord {
  return { ...unknownTool, epoch: record.epoch + 1, history: record.history }
}

/** Other code has the name now: it has earned nothing, and what was held against the name it must live down. */
export function afterReplacement(record: TrustRecord): TrustRecord {
  return { ...record, tier: 'untrusted', evidence: 0, epoch: record.epoch + 1 }
}

/** Whether a tool's own tier is at least `provisional`, which is what an untrusted server's pattern rules take. */
export const isProvisional = (record: TrustRecord): boolean => record.tier !== 'untrusted'

const tierOf = (weight: number, { provisionalAfter, trustedAfter }: TrustThresholds): TrustTier =>
  weight >= trustedAfter ? 'trusted' : weight >= provisionalAfter ? 'provisional' : 'untrusted'

/** Whether whatever trust decides is decided the same by both. */
export const isAsItWas = (before: TrustRecord, now: TrustRecord): boolean =>
  before.epoch === now.epoch && before.tier === now.tier
