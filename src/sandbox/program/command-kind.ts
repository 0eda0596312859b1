// What a command does with its arguments, told by its names, and by its content where the names are no help.
import { basename } from 'node:path'
import { interpreterCalled, interpreterMarked, interpreterMarkers, type Interpreter } from './interpreters.ts'
import { isManyFaced, launcherCalled, launcherMarked, launcherMarkers } from './launchers.ts'
import { packageRunnerCalled, type PackageRunner } from './package-runners.ts'

/** What a program does with its arguments: run a script, fetch a package, run another program, or nothing of that kind. */
export type CommandKind =
  | { readonly kind: 'interpreter'; readonly interpreter: Interpreter }
  | { readonly kind: 'runner'; readonly runner: PackageRunner }
  | { readonly kind: 'launcher'; readonly launcher: string }
  | { readonly kind: 'program' }

/** What to look for in a file whose names say nothing. */
export const kindMarkers: readonly string[] = [...launcherMarkers, ...interpreterMarkers]

/**
 * Returns what a program is by its names: the one it was allowed under, its path's and its real path's. One name is
 * enough to be a launcher, a runner or an interpreter, in this order.
 */
export const kindByName = (name: string, path: string, real: string): CommandKind => {
  // /bin/sh that leads to busybox is a shell, since it is started as `sh`.
  const names = [name, basename(path), ...(isManyFaced(basename(real)) ? [] : [basename(real)])]
  const launcher = launcherCalled(names)
  if (launcher !== null) return { kind: 'launcher', launcher }
  const runner = packageRunnerCalled(names)
  if (runner !== null) return { kind: 'runner', runner }
  const interpreter = interpreterCalled(names)
  return interpreter === null ? { kind: 'program' } : { kind: 'interpreter', interpreter }
}

/** Returns what a program is whose file holds the marker. */
export const kindByMarker = (marker: string): CommandKind => {
  const launcher = launcherMarked(marker)
  if (launcher !== null) return { kind: 'launcher', launcher }
  const interpreter = interpreterMarked(marker)
  return interpreter === null ? { kind: 'program' } : { kind: 'interpreter', interpreter }
}
