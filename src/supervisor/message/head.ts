// The beginning of what is too long to be answered at once, in the shape of a result.

/** At most `limitBytes` of UTF-8, ending between two characters. */
export function headOf(text: string, limitBytes: number): string {
  const bytes = Buffer.from(text.slice(0, limitBytes))
  return new TextDecoder().decode(bytes.subarray(0, limitBytes), { stream: true })
}

/** What the result's text blocks say, or its JSON where it has none, cut so that `data` is at most `limitBytes` long. */
export function resultHead(
  json: string,
  limitBytes: number,
): { readonly data: object; readonly text: string } {
  const result: unknown = JSON.parse(json)
  const said = textsOf(result)
  const whole = said === '' ? json : said
  const isError = Reflect.get(Object(result), 'isError') === true ? { isError: true } : {}
  const dataOf = (text: string): object => ({ content: [{ type: 'text', text }], ...isError })
  for (let limit = limitBytes; ;) {
    const text = headOf(whole, limit)
    const data = dataOf(text)
    const size = Buffer.byteLength(JSON.stringify(data))
    if (size <= limitBytes || limit === 0) return { data, text }
    limit = Math.max(0, Math.min(limit - 1, Math.floor((limit * (limitBytes - 64)) / size)))
  }
}

/** The texts of a result's blocks, a line each. */
export function textsOf(result: unknown): string {
  const content: unknown = Reflect.get(Object(result), 'content')
  const texts = (Array.isArray(content) ? (content as unknown[]) : []).flatMap((block) => {
    const text: unknown = Reflect.get(Object(block), 'text')
    return typeof text === 'string' ? [text] : []
  })
  return texts.join('\n')
}
