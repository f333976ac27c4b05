import type { Chance } from './chance.ts'
import type { Chain } from './vocabulary.ts'

const hexDigits = '0123456789abcdef'
const mixedHex = '0123456789abcdefABCDEF'
const base58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const alphanumeric = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ'

/** A lowercase slug: letters and digits in words joined by one dash. */
export function slug(text: string): string {
  const plain = text
    .normalize('NFD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
  return plain || 'item'
}

/** The check digit of an ISIN's first eleven characters (Luhn over letters as two-digit numbers). */
export function isinCheckDigit(body: string): number {
  const digits = Array.from(body, (c) => String(Number.parseInt(c, 36))).join('')
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i])
    const doubled = i % 2 === 0 ? digit * 2 : digit
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return (10 - (sum % 10)) % 10
}

/** An ISIN of the country with a valid check digit. */
export function isin(country: string, source: Chance): string {
  const body = country + source.text(alphanumeric, 9)
  return body + String(isinCheckDigit(body))
}

/** A contract or mint address in the form of the chain. */
export function address(chain: Chain, source: Chance): string {
  if (chain.form === 'evm') return `0x${source.text(source.yes(0.6) ? mixedHex : hexDigits, 40)}`
  if (chain.form === 'base58') return source.text(base58, 43 + source.int(2))
  if (chain.form === 'stellar') return `G${source.text(base32, 55)}`
  if (chain.form === 'ripple') return `r${source.text(base58, 33)}`
  return `0x${source.text(hexDigits, 64)}`
}

/** The digest of a document that nobody has, shortened as the registry shortens it. */
export function documentHash(source: Chance): string {
  return `sha256:${source.text(hexDigits, 16)}`
}

/** A ticker of three to five letters. */
export function ticker(source: Chance): string {
  return source.text(letters, 3 + source.int(3))
}
