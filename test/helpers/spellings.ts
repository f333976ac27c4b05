// Every spelling is made here from the description of its encoding, not by the code that looks for it.

/** One character as JSON may escape it: 1 and 2 in hexadecimal, 3 with `\/`, else only where it must be. */
export function jsonEscape(char: string, way: number): string {
  const code = char.charCodeAt(0).toString(16).padStart(4, '0')
  if (way === 1) return `\\u${code}`
  if (way === 2) return `\\u${code.toUpperCase()}`
  return char === '"' || char === '\\' ? `\\${char}` : char === '/' && way === 3 ? '\\/' : char
}

/** One character percent-encoded: 1 and 2 always, else only where it must be. */
export function percentEscape(char: string, way: number): string {
  const code = char.charCodeAt(0).toString(16)
  return way === 1 ? `%${code.toUpperCase()}` : way === 2 || /[^\w.~-]/.test(char) ? `%${code}` : char
}

/** A text spelled character by character, in these ways by turns. */
export function each(text: string, ways: readonly number[], spell: (char: string, way: number) => string): string {
  return Array.from(text, (char, at) => spell(char, ways[at % ways.length] ?? 0)).join('')
}

/** The text in base64, somewhere inside a longer one: after so many bytes, and with two more behind it. */
export function base64(before: number, text: string, url: boolean): string {
  const bits = Array.from(`${'x'.repeat(before)}${text}yz`, (c) => c.charCodeAt(0).toString(2).padStart(8, '0')).join(
    '',
  )
  const letters = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${url ? '-_' : '+/'}`
  return (bits.match(/.{6}/g) ?? []).map((six) => letters[Number.parseInt(six, 2)]).join('')
}

/** Whether somebody who reads the text, as it is or with its escapes undone, finds the secret in it. */
export function leaks(text: string, secret: string): boolean {
  const seen = [text]
  if (text.includes('\\')) seen.push(unescaped(text))
  seen.push(...seen.filter((one) => one.includes('%')).map(unquoted))
  const cores = [0, 1, 2].flatMap((before) =>
    [true, false].map((url) => base64(before, secret, url).slice(Math.ceil((before * 8) / 6), -4)),
  )
  return seen.some((one) => [secret, ...cores].some((form) => one.includes(form)))
}

function unescaped(text: string): string {
  return text.replaceAll(/\\u([\da-fA-F]{4})|\\(.)/g, (_, code: string | undefined, char: string) =>
    code === undefined ? char : String.fromCharCode(Number.parseInt(code, 16)),
  )
}

function unquoted(text: string): string {
  return text.replaceAll(/%([\da-fA-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/** A secret in every form that is sought, by name. */
export function everyForm(secret: string): Readonly<Record<string, string>> {
  return {
    raw: each(secret, [0], jsonEscape),
    slashes: each(secret, [3], jsonEscape),
    letters: each(secret, [1, 0, 2], jsonEscape),
    percent: each(secret, [0], percentEscape),
    percents: each(secret, [1, 2, 0], percentEscape),
    both: each(each(secret, [1, 0], percentEscape), [0, 1], jsonEscape),
    base64: base64(0, secret, false),
    basic: base64(1, secret, false),
    base64url: base64(2, secret, true),
  }
}
