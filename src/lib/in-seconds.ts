// A moment to come, as people are told of it.

/** Says in how many seconds a moment is, which is an ISO time: `in 42 s`, and `now` where it has come. */
export const inSeconds = (at: string): string => {
  const seconds = Math.ceil((Date.parse(at) - Date.now()) / 1000)
  return seconds > 0 ? `in ${seconds} s` : 'now'
}
