// How long the path of a unix socket may be: Node 22 cuts a longer one off, and takes what is left.

/** Bytes: sun_path holds 108 with its NUL. */
export const maxSocketPath = 107
