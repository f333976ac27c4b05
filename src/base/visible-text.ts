/** Signs that a terminal acts on instead of showing them: controls, and marks that turn the direction of text. */
const silent = /[\p{Cc}\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu

/** Spells out every character of a text that could move a cursor, colour a line or hide a word; line ends, too. */
export function visible(text: string): string {
  return text
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t')
    .replaceAll(silent, (sign) => `\\u${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`)
}

/** Makes a text of several lines visible; its line ends are preserved. */
export function visibleLines(text: string): string {
  return text.split('\n').map(visible).join('\n')
}
