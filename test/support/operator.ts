// Small acts on an operator's files.

/** A declaration's YAML without one tool. */
export function withoutFirst(yaml: string, tool: string): string {
  const lines = yaml.split('\n')
  const start = lines.indexOf(`  ${tool}:`)
  const length = lines.slice(start + 1).findIndex((line) => /^ {2}\S/.test(line))
  return [...lines.slice(0, start), ...lines.slice(start + 1 + length)].join('\n')
}
