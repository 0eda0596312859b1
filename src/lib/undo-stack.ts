// What was made on the way, undone in reverse: as AsyncDisposableStack does, which came with Node 24.

type Made = AsyncDisposable | Disposable

/** Undoes at its end, last first, what it was told of; each is tried, whatever became of the one before. */
export class UndoStack implements AsyncDisposable {
  #steps: (() => unknown)[] = []

  /** Takes a step that undoes something. */
  defer(step: () => unknown): void {
    this.#steps.push(step)
  }

  /** Takes what is to be disposed of, and returns it. */
  use<T extends Made>(made: T): T {
    this.defer(() => (Symbol.asyncDispose in made ? made[Symbol.asyncDispose]() : made[Symbol.dispose]()))
    return made
  }

  /** Hands all of it over to another one: this one has nothing to undo from then on. */
  move(): UndoStack {
    const moved = new UndoStack()
    moved.#steps = this.#steps
    this.#steps = []
    return moved
  }

  /** Fails as the first step did that failed, once all were tried. */
  async [Symbol.asyncDispose](): Promise<void> {
    let failed: { readonly thrown: unknown } | null = null
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step()
      } catch (thrown) {
        failed ??= { thrown }
      }
    }
    if (failed !== null) throw failed.thrown
  }
}
