// What the daemon tells V8, which cannot know that it will do the same few things thousands of times a second.
import { setFlagsFromString } from 'node:v8'

/** Says whether V8's young generation may double when much of it survives, as it does by default. */
export function mayGrow(isAllowed: boolean): void {
  setFlagsFromString(`--semi-space-growth-factor=${isAllowed ? 2 : 1}`)
}

/**
 * Lets V8 put three times as much of what a function calls into its machine code as by default (3000 bytes of bytecode for
 * 920, and twice as much with what is always put there). A governed call goes through hundreds of small functions: those that
 * stand together need no calls, and of the objects that they hand each other many need not be made.
 */
export function inlineMore(): void {
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=3000')
  setFlagsFromString('--max-inlined-bytecode-size-absolute=9000')
}
