import tables from './entities.json' with { type: 'json' }
import { formatDate, formatInstant, hour } from '../../base/time.ts'
import type { EntityRow } from './store.ts'
import { hashText, unit } from '../world/noise.ts'

/**
 * The asset classes, how common each is among new assets, and the tails of names, where `%` is the word pair before it.
 * The list is open and grows in this world in June 2025, by the last one.
 */
export const assetClasses = tables.assetClasses as [name: string, weight: number, tails: string[]][]

/** The listed venue types; the list is open and grows in this world in November 2025. */
export const venueTypes = ['cex', 'perp-dex', 'rwa-exchange'] as const

/** The venue type that no document lists. */
export const laterVenueType = 'otc-desk'

/** Chain as the registry writes it: one chain may have several ids. */
export type Chain = (typeof chains)[number]

/** The chains of the world, the most used first. */
export const { chains } = tables

/** Home countries of issuers, with the ISIN prefixes of their papers. */
export const { jurisdictions } = tables

/**
 * The three fields of an issuer that tell null, `not disclosed`, `None (…)` and a name apart: the names and the
 * reasons.
 */
export const disclosures: Readonly<Record<string, Readonly<Record<'named' | 'none', readonly string[]>>>> =
  tables.disclosures

/** Draws a pair of words with which names begin. */
export const wordPair = (source: Chance): string =>
  `${source.pick(tables.firstWords)} ${source.pick(tables.secondWords)}`

/** Draws an answer to one of the three fields: not established, not disclosed, none with its reason, or a name. */
export function disclosure(field: string, source: Chance): string | null {
  const roll = source.next()
  const { named = [], none = [] } = disclosures[field] ?? {}
  if (roll < 0.18) return null
  if (roll < 0.36) return 'not disclosed'
  return source.pick(roll < 0.46 ? none : named)
}

/** Draws one published document of an issuer or product. */
export function publishedDocument(owner: string, at: number, source: Chance): EntityRow {
  const title = source.pick(['Prospectus', 'Final Terms', 'Key Information Document', 'Attestation', 'Annual Report'])
  const published = formatDate(at - source.int(200) * 24 * hour)
  return { title, url: `https://docs.example.org/${owner}/${slug(title)}-${published}.pdf`, published }
}

/** Draws one source that an issuer published about a deployment; some are known by their digest alone. */
export function provenance(at: number, source: Chance): EntityRow {
  const kind = source.pick(['issuer_site', 'prospectus', 'explorer', 'api'])
  const observed = { document_hash: documentHash(source), observed_at: formatInstant(at), kind }
  return source.yes(0.15)
    ? observed
    : { source_url: `https://example.org/${observed.document_hash.slice(7, 13)}`, ...observed }
}

/** Draws an asset class as common as its weight. */
export function assetClass(source: Chance): string {
  let roll = source.int(assetClasses.reduce((sum, [, weight]) => sum + weight, 0))
  return assetClasses.find(([, weight]) => (roll -= weight) < 0)?.[0] ?? 'stocks'
}

/** Draws the name of an asset of the class. */
export function assetName(kind: string, source: Chance): string {
  const [, , tails = []] = assetClasses.find(([name]) => name === kind) ?? []
  return source.pick(tails).replace('%', wordPair(source))
}

/** Builds the row of a new asset. */
export function assetRow(id: string, name: string, kind: string, source: Chance, fixedTicker?: string): EntityRow {
  const hasIsin = !['stablecoins', 'commodities', 'pe-vc', 'carbon-credits'].includes(kind) && source.yes(0.8)
  return {
    id,
    name,
    asset_class: kind,
    ticker: fixedTicker ?? (source.yes(0.85) ? ticker(source) : null),
    isin: hasIsin ? isin(source.pick(jurisdictions), source) : null,
  }
}

const hexDigits = '0123456789abcdef'
const mixedHex = '0123456789abcdefABCDEF'
const base58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const alphanumeric = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ'

/** Converts a text to a lowercase slug: letters and digits in words joined by one dash. */
export function slug(text: string): string {
  const plain = text
    .normalize('NFD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
  return plain || 'item'
}

/** Computes the check digit of an ISIN's first eleven characters (Luhn over letters as two-digit numbers). */
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

/** Draws an ISIN of the country with a valid check digit. */
export function isin(country: string, source: Chance): string {
  const body = country + source.text(alphanumeric, 9)
  return body + String(isinCheckDigit(body))
}

/** Draws a contract or mint address in the form of the chain. */
export function address(chain: Chain, source: Chance): string {
  if (chain.form === 'evm') return `0x${source.text(source.yes(0.6) ? mixedHex : hexDigits, 40)}`
  if (chain.form === 'base58') return source.text(base58, 43 + source.int(2))
  if (chain.form === 'stellar') return `G${source.text(base32, 55)}`
  if (chain.form === 'ripple') return `r${source.text(base58, 33)}`
  return `0x${source.text(hexDigits, 64)}`
}

/** Makes the digest of a document that does not exist, shortened as the registry shortens it. */
const documentHash = (source: Chance): string => `sha256:${source.text(hexDigits, 16)}`

/** Draws a ticker of three to five letters. */
const ticker = (source: Chance): string => source.text(letters, 3 + source.int(3))

/** A deterministic source of choices; the same seed and keys give the same sequence on every machine. */
export interface Chance {
  /** The next number in `[0, 1)`. */
  readonly next: () => number
  /** A whole number in `[0, below)`. */
  readonly int: (below: number) => number
  /** Whether something of this probability happens. */
  readonly yes: (probability: number) => boolean
  /** One of the items; the list must not be empty. */
  readonly pick: <T>(items: readonly T[]) => T
  /** Draws how often something happens that is expected `mean` times (Poisson). */
  readonly times: (mean: number) => number
  /** A text of this length over the alphabet. */
  readonly text: (alphabet: string, length: number) => string
}

/** Starts the sequence that belongs to these keys. */
export function chance(...keys: readonly (string | number)[]): Chance {
  let state = hashText(keys.join('|'))
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let z = Math.imul(state ^ (state >>> 15), state | 1)
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61)
    return unit((z ^ (z >>> 14)) >>> 0)
  }
  const int = (below: number): number => Math.floor(next() * below)
  return {
    next,
    int,
    yes: (probability: number): boolean => next() < probability,
    pick: <T>(items: readonly T[]): T => items[int(items.length)] as T,
    times: (mean: number): number => poisson(mean, next),
    text: (alphabet: string, length: number): string =>
      Array.from({ length }, () => alphabet[int(alphabet.length)]).join(''),
  }
}

function poisson(mean: number, next: () => number): number {
  const limit = Math.exp(-mean)
  let product = next()
  let n = 0
  while (product > limit && n < 1000) {
    product *= next()
    n++
  }
  return n
}
