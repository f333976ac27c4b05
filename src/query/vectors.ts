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

/** What a vector keeps inside: the values side by side, and which of them are there. */
export interface Inside {
  readonly items: Numbers
  /** Types that overlay another one have none. */
  readonly validity?: { readonly data: BigUint64Array | null }
}

/** What vectors of some types keep inside beside it. */
interface Further {
  /** Of texts: sixteen bytes each. */
  readonly dataView: DataView
  /** Of maps, which are lists of pairs. */
  readonly listVector: DuckDBVector
  /** Of arrays. */
  readonly childData: DuckDBVector
}

/** The part of that name inside a vector whose type has it. */
export function partOf<P extends keyof Further>(vector: DuckDBVector, part: P): Further[P] {
  return (vector as unknown as Further)[part]
}

/** The inside of a vector. */
export function inside(vector: DuckDBVector): Inside {
  return vector as unknown as Inside
}

/** Which values are there, one bit each; null where all are. */
export function bitsOf(vector: DuckDBVector): Uint8Array | null {
  const data = inside(vector).validity?.data ?? null
  return data === null ? null : new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

/** Whether a value is there, by these bits. */
export function isSet(bits: Uint8Array | null, index: number): boolean {
  return bits === null || ((bits[index >> 3] ?? 0) & (1 << (index & 7))) !== 0
}

/** Tells which values of a vector are there, without making them. */
export function presenceIn(vector: DuckDBVector): (index: number) => boolean {
  if (inside(vector).validity === undefined) return (index) => vector.getItem(index) !== null
  const bits = bitsOf(vector)
  return (index) => isSet(bits, index)
}
