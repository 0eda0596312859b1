// Text of servers and kernels, made harmless for the place where it will stand.

/** One line in which nothing steers a terminal or hides: control and format characters are written out. */
export const oneLine = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\u2028\u2029]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0
    return code <= 0xff ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
  })

/** Text or an attribute's value of XML or HTML; what XML 1.0 cannot hold is written out. */
export const markup = (text: string): string =>
  oneLine(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
