// How long a test waits for what has to come: longer than it takes on any machine that is busy with other things.

/**
 * In milliseconds, and below a test's own bound, so that what did not come is what is told. A bound that is itself a promise
 * stands where the promise is tried.
 */
export const patienceMs = 120_000

/** The same for what a test has one other process do from beginning to end, such as a whole verification: below `longestMs`. */
export const wholeMs = 570_000

/** The bound of a test of such a process. */
export const longestMs = 600_000
