/** The keys of the objects at one depth of a body: mostly the same ones in the same order, over and over. */
interface Row {
  /** Those of the last object, as they are written; known to differ from one another. */
  readonly names: Buffer[]
  /** How many keys of the object at hand are those of the last one, one by one. */
  same: number
  /** All keys of the object at hand, once one is another; null before. */
  own: Set<string> | null
}

/** Finds a key that stands twice in one object, at any depth. */
export class NestedKeys {
  readonly #rows: Row[] = []
  /** The beginning of a key that the end of a chunk cut. */
  #head: Buffer | null = null

  /** An object begins at this depth. */
  begin(depth: number): void {
    const row = (this.#rows[depth] ??= { names: [], same: 0, own: null })
    row.same = 0
    row.own = null
  }

  /** Keeps the beginning of a key that goes on in the next chunk. */
  cut(chunk: Buffer, start: number): void {
    const part = chunk.subarray(start)
    this.#head = Buffer.concat(this.#head === null ? [part] : [this.#head, part])
  }

  /** Takes the key between two places of the chunk; gives it as a text where its object has it already. */
  repeated(depth: number, chunk: Buffer, start: number, end: number): string | null {
    const row = this.#rows[depth]
    if (row === undefined) return null
    const head = this.#head
    this.#head = null
    const known = row.names[row.same]
    if (head === null && row.own === null && known !== undefined && isSame(known, chunk, start, end)) {
      row.same++
      return null
    }
    row.own ??= new Set(row.names.slice(0, row.same).map(textOf))
    const name = Buffer.concat(head === null ? [chunk.subarray(start, end)] : [head, chunk.subarray(start, end)])
    const text = textOf(name)
    if (row.own.has(text)) return text
    row.names.length = row.own.size
    row.names.push(name)
    row.own.add(text)
    return null
  }
}

function isSame(known: Buffer, chunk: Buffer, start: number, end: number): boolean {
  if (known.length !== end - start) return false
  for (let i = 0; i < known.length; i++) if (known[i] !== chunk[start + i]) return false
  return true
}

/** What a key is called, however its signs are written; one whose escapes are none is DuckDB's to refuse. */
function textOf(name: Buffer): string {
  const text = name.toString()
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}
