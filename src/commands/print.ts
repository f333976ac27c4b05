import { layTable } from '../query/table.ts'

/** Rows as an aligned table; numbers to the right. */
export function table(header: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const text = (cell: string | number | null | undefined): string =>
    typeof cell === 'number' ? number(cell) : (cell ?? '')
  const numeric = (i: number): boolean =>
    rows.length > 0 && rows.every((row) => typeof row[i] === 'number' || row[i] === null)
  const columns = header.map((_, i) => rows.map((row) => text(row[i])))
  const types = header.map((_, i) => (numeric(i) ? 'DOUBLE' : 'VARCHAR'))
  return layTable(header, types, columns, { width: Infinity, longest: Infinity })
}

/** `1,234,567.5`, at most three decimals. To set up the formatter of a locale takes longer than all lines of a run. */
export function number(value: number): string {
  const [whole = '', ...decimals] = String(Math.round(value * 1000) / 1000).split('.')
  return [whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ','), ...decimals].join('.')
}

/** A label and its text as lines of at most 80 columns, broken between words; what follows stands under the text. */
export function wrapped(line: string, indent = 13): string[] {
  const lines: string[] = []
  let rest = line
  while (rest.length > 80) {
    const space = rest.lastIndexOf(' ', 80)
    const cut = space >= indent ? space : 80
    lines.push(rest.slice(0, cut).trimEnd())
    rest = `${' '.repeat(indent)}${rest.slice(cut).trimStart()}`
  }
  return [...lines, rest]
}

/** One JSON document on stdout; whole numbers beyond 2^53 are texts. */
export function json(value: unknown): string {
  const plain = (_: string, held: unknown): unknown =>
    typeof held !== 'bigint' ? held : Number.isSafeInteger(Number(held)) ? Number(held) : String(held)
  return `${JSON.stringify(value, plain, 2)}\n`
}

/** Seconds as people read them: `1 h 12 min`, `40 s`. */
export function seconds(total: number): string {
  if (total < 60) return `${Math.round(total)} s`
  const minutes = Math.round(total / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
