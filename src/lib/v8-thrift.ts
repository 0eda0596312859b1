// What V8 may take for speed: nothing for a start, which runs once, and room for the young once there are calls.
import { setFlagsFromString } from 'node:v8'

/**
 * Keeps the young generation as small as it is: what a start allocates it does once, and V8 would keep 32 MiB of room for it, for
 * ever after.
 */
export function startSmall(): void {
  growBy(1)
}

/**
 * Grows the young generation to eight times its size, and lets V8 grow it further as it does by default. V8 grows it where much
 * survives a collection; calls leave little behind, and with little room are collected behind every hundred of them. Takes some ms.
 */
export function makeRoom(): void {
  growBy(8)
  Array.from({ length: 150_000 }, (_, n) => ({ n })) // each lives until the last is made
  growBy(2)
}

function growBy(factor: number): void {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`)
}
