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

/** What vectors keep inside, each type its own. */
interface Inside {
  readonly items: Numbers
  /** Which values are there; null where all are. Types that overlay another one have none. */
  readonly validity: { readonly data: BigUint64Array | null } | undefined
  /** Of texts: sixteen bytes each. */
  readonly dataView: DataView
  /** Of maps, which are lists of pairs. */
  readonly listVector: DuckDBVector
  /** Of arrays. */
  readonly childData: DuckDBVector
}

/** The part of that name inside a vector whose type has it. */
export function insideOf<P extends keyof Inside>(vector: DuckDBVector, part: P): Inside[P] {
  // The package declares these fields private; reading them spares a copy of every value.
  return (vector as unknown as Inside)[part]
}

/** Tells which values of a vector are there, without making them. */
export function presenceIn(vector: DuckDBVector): (index: number) => boolean {
  const validity = insideOf(vector, 'validity')
  if (validity === undefined) return (index) => vector.getItem(index) !== null
  const { data } = validity
  if (data === null) return () => true
  const bits = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  return (index) => ((bits[index >> 3] ?? 0) & (1 << (index & 7))) !== 0
}
