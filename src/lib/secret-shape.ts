// Texts that have the shape of a well-known kind of secret; advisory, since a secret may have any shape.

const shapes: readonly { readonly kind: string; readonly pattern: RegExp }[] = [
  { kind: 'a GitHub token', pattern: /\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})/ },
  { kind: 'a GitLab token', pattern: /\bglpat-[A-Za-z0-9_-]{16,}/ },
  { kind: 'an AWS access key', pattern: /\b(AKIA|ASIA)[A-Z0-9]{16}\b/ },
  { kind: 'a Google API key', pattern: /\bAIza[A-Za-z0-9_-]{30,}/ },
  { kind: 'a Slack token', pattern: /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/ },
  {
    kind: 'an API key',
    pattern: /\b[srp]k[-_](?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{20,}/,
  },
  { kind: 'an npm token', pattern: /\bnpm_[A-Za-z0-9]{30,}/ },
  { kind: 'a JSON web token', pattern: /\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\./ },
  { kind: 'a private key', pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----/ },
  { kind: 'a password in an address', pattern: /\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:[^\s/@]+@/i },
  {
    kind: 'a secret option with its value',
    pattern: /^--?[a-z-]*(token|secret|password|passwd|api-?key|private-key)=./i,
  },
]

/** Names the kind of secret that a text looks like, or null. */
export function secretShape(text: string): string | null {
  return shapes.find(({ pattern }) => pattern.test(text))?.kind ?? null
}
