// Arguments against accepted schemas: plain ones at once, all others by a thread that can be stopped.
import type { AcceptedTool } from '../../call/declaration.ts'
import { type Check, judgePlainly, plainCheck, TooLong } from '../../call/plain-schema.ts'
import { ArgumentJudge, type Owner } from '../../schema/argument-judge.ts'

/** Knows every accepted tool's schema once. */
export class ArgumentSchemas implements AsyncDisposable {
  readonly #plain = new WeakMap<AcceptedTool, Check | 'not plain'>()
  /** For the thread, as JSON */
  readonly #texts = new WeakMap<AcceptedTool, string>()
  #judge: ArgumentJudge | null = null

  /** Null when the arguments are what the schema says; otherwise where and why not. `text` is the arguments' JSON. */
  judge(
    owner: Owner,
    tool: AcceptedTool,
    args: unknown,
    text: string,
  ): Promise<string | null> | string | null {
    let check = this.#plain.get(tool)
    if (check === undefined) {
      check = plainCheck(tool.declaration.parameters) ?? 'not plain'
      this.#plain.set(tool, check)
    }
    if (check !== 'not plain')
      try {
        return judgePlainly(check, args, 'arguments')
      } catch (error) {
        if (!(error instanceof TooLong)) throw error
        // Beside each other they are long: the thread has the time that there is, and no more.
      }
    this.#judge ??= new ArgumentJudge()
    return this.#judge.ask({ digest: tool.surfaceDigest, schema: this.#textOf(tool), value: text }, owner)
  }

  #textOf(tool: AcceptedTool): string {
    const known = this.#texts.get(tool) ?? JSON.stringify(tool.declaration.parameters)
    this.#texts.set(tool, known)
    return known
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#judge?.[Symbol.asyncDispose]()
  }
}
