// What a sandbox has at one path, before links are followed.
import type { Mount } from '../spec.ts'

/**
 * What a server gets of a path.
 *
 * `read`, `write`: as it says, `write` both; `private`: the same in memory of the sandbox's own; `own`: a file, folder or link
 * that the sandbox has of its own, to read; `partly`: a folder of the sandbox's own that holds only what is planned there;
 * `masked`: there, and covered; `closed`: there, and shut to the server's user by its mode; `socket`: there to connect to;
 * `absent`: not there.
 */
export type Got = 'read' | 'write' | 'private' | 'own' | 'partly' | 'masked' | 'closed' | 'socket' | 'absent'

/** One step of the walk: a link to go on from, or what is there, and whether a walk may go through it. */
export type Entry =
  | { readonly link: string }
  | {
      readonly gets: Got
      readonly because: string
      readonly mount?: Mount
      readonly mayEnter: boolean
    }
