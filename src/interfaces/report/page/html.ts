/** Text that is markup already. */
export interface Html {
  readonly markup: string
}

type Part = Html | string | number | null | undefined | false | readonly Part[]

/** Escapes every text inserted into a template; only markup from `html` itself is inserted as it is. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { markup: strings.map((text, index) => text + (index < parts.length ? flat(parts[index]) : '')).join('') }
}

function flat(part: Part): string {
  if (part === null || part === undefined || part === false) return ''
  if (typeof part === 'number') return String(part)
  if (typeof part === 'string') return escapeText(part)
  if ('markup' in part) return part.markup
  return part.map(flat).join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes a text for use between tags and in quoted attributes; control characters are shown, not sent. */
function escapeText(text: string): string {
  return text
    .replaceAll(/[&<>"']/g, (char) => entities[char] ?? char)
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '\ufffd')
    .toWellFormed()
}

/** Formats a value as JSON that may be inside a script element. */
export function inlineJson(value: unknown): Html {
  const text = JSON.stringify(value).replaceAll(/[<>&\u2028\u2029]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
  return { markup: text }
}
