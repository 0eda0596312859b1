// The methods beside `tools/call` that rules decide: what a rule may name, and what the table of methods governs.

/** Methods of a host that are decided and recorded as calls of tools are, `tools/call` apart. */
export const governedMethods: readonly string[] = [
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'prompts/get',
  'completion/complete',
  'tasks/get',
  'tasks/list',
  'tasks/result',
  'tasks/update',
  'tasks/cancel',
]
