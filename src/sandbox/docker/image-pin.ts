// An image as a server's registration holds it.

/** An image as it was registered. */
export interface ImagePin {
  /** As the server's entry names it */
  readonly reference: string
  /** Digest of its configuration, and so of everything in it; what a container is made from */
  readonly id: string
  /** `NAME@sha256:…` as its registry knows it, or the id of an image that was built here */
  readonly pinned: string
  /** Folders that it declares as volumes */
  readonly volumes: readonly string[]
  /** Names of its labels, which a container would have, too */
  readonly labels: readonly string[]
  /** Names of its variables, which PID 1 and the hooks of a runtime would see */
  readonly variables: readonly string[]
}
