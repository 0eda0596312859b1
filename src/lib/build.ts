// Which build this is: the parts of one are made for each other.

/** Digest of all of our code, written in when its modules are put together; the same for all that never were. */
export const build = 'not put together'
