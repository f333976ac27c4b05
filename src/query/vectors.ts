import type { DuckDBVector } from '@duckdb/node-api'

/** Values of one width, side by side. */
export type Numbers =
  | Int8Array
  | Int16Array
  | Int32Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array

/** Internal fields of vectors, by type. */
interface Inside {
  readonly items: Numbers
  /** Validity bits of the values; null if all are valid. Types that overlay another one have none. */
  readonly validity: { readonly data: BigUint64Array | null } | undefined
  /** Entries of texts, sixteen bytes each. */
  readonly dataView: DataView
  /** List of pairs, for maps. */
  readonly listVector: DuckDBVector
  /** Values of arrays. */
  readonly childData: DuckDBVector
}

/** Returns the part of that name inside a vector whose type has it. */
export function insideOf<P extends keyof Inside>(vector: DuckDBVector, part: P): Inside[P] {
  // The package declares these fields private; reading them spares a copy of every value.
  return (vector as unknown as Inside)[part]
}

/** Builds a test for which values of a vector are not NULL, without making them. */
export function presenceIn(vector: DuckDBVector): (index: number) => boolean {
  const validity = insideOf(vector, 'validity')
  if (validity === undefined) return (index) => vector.getItem(index) !== null
  const { data } = validity
  if (data === null) return () => true
  const bits = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  return (index) => ((bits[index >> 3] ?? 0) & (1 << (index & 7))) !== 0
}
