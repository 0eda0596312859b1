// Names that hosts of models have for tools of their own: whoever reads such a name alone may take a server's tool for the host's.

const fold = (name: string): string => name.toLowerCase().replaceAll(/[_.-]/g, '')

/** As several hosts call what they bring along, each in its own spelling */
const hosts: ReadonlySet<string> = new Set(
  (
    'read write edit multi_edit apply_patch notebook_edit bash shell run_shell_command glob grep ls task ' +
    'todo_read todo_write web_fetch web_search tool_search'
  )
    .split(' ')
    .map(fold),
)

/** Those of some tools' names by which hosts know tools of their own, however they are spelt. */
export const borrowed = (tools: Iterable<string>): readonly string[] =>
  [...tools].filter((tool) => hosts.has(fold(tool)))
