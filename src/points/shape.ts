/** One kind of points, as typed JSON reading declares it; the SQL makes columns of the lake and stops at what is unsound. */
export interface Shape {
  /** `numbers`: v is a number. `objects`: o is nested. `nested`: v is nested. */
  readonly kind: 'numbers' | 'objects' | 'nested'
  /** Whether computed_at is read. */
  readonly told: boolean
  readonly columns: string
  readonly v: string
  readonly o: string
  readonly computed: string
}

/** From here on a double does not hold every integer: whether it held the one that was sent, only its text tells. */
export const beyondDouble = 2 ** 53

/** A zero with a minus sign is left to the careful way: a Parquet dictionary would take it for the other zero. */
const soundNumber = `CASE WHEN v IS NULL OR (abs(v) < ${beyondDouble} AND NOT (v = 0 AND signbit(v))) THEN v ELSE error('v') END`
const soundInstant = `CASE WHEN computed_at IS NULL OR (computed_at >= 0 AND computed_at < 1e11)
  THEN TRY_CAST(round(computed_at * 1e6) AS BIGINT) ELSE error('computed_at') END`

const kinds = [
  {
    kind: 'numbers',
    begins: /^\s*\[\s*\{(?=[^}]*"v"\s*:)(?![^}]*:\s*[[{"])/,
    column: `v: 'DOUBLE'`,
    v: soundNumber,
    o: 'CAST(NULL AS VARCHAR)',
  },
  {
    kind: 'objects',
    begins: /^\s*\[\s*\{[^[{]*"o"\s*:\s*[[{]/,
    column: `o: 'VARCHAR'`,
    v: 'CAST(NULL AS DOUBLE)',
    o: 'o',
  },
  {
    kind: 'nested',
    begins: /^\s*\[\s*\{[^[{]*"v"\s*:\s*[[{]/,
    column: `v: 'VARCHAR'`,
    v: 'CAST(NULL AS DOUBLE)',
    o: 'v',
  },
] as const

/** What the points of all bodies look like, by the beginnings of the bodies; undefined where they differ. */
export function shapeOf(heads: readonly string[]): Shape | undefined {
  if (heads.length === 0) return undefined
  const fit = kinds.find(({ begins }) => heads.every((text) => begins.test(text)))
  if (!fit) return undefined
  const { kind, column, v, o } = fit
  const told = heads.some((text) => text.includes('"computed_at"'))
  const columns = `{t: 'DOUBLE', ${column}${told ? `, computed_at: 'DOUBLE'` : ''}}`
  return { kind, told, columns, v, o, computed: told ? soundInstant : 'CAST(NULL AS BIGINT)' }
}
