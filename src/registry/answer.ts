/** What the registry says where an issuer's documents were read: four answers that must not be mixed up. */
export interface Answer {
  readonly kind: 'not_established' | 'not_disclosed' | 'none' | 'named'
  /** The value as sent; null while nothing is established. */
  readonly value: string | null
  /** What stands in the brackets of `None (…)`. */
  readonly reason: string | null
}

/** Reads a custodian, governing law or regulator. Null and absent are `not_established`; anything unknown is a name. */
export function readAnswer(value: string | null): Answer {
  if (value === null) return { kind: 'not_established', value, reason: null }
  if (value === 'not disclosed') return { kind: 'not_disclosed', value, reason: null }
  if (value.startsWith('None (')) return { kind: 'none', value, reason: value.slice(6).replace(/\)\s*$/, '') }
  return { kind: 'named', value, reason: null }
}
