/** Rows as an aligned table; numbers to the right. */
export function table(header: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const text = rows.map((row) =>
    row.map((cell) => (cell === null ? '' : typeof cell === 'number' ? cell.toLocaleString('en-US') : cell)),
  )
  const widths = header.map((title, i) => Math.max(title.length, ...text.map((row) => row[i]?.length ?? 0)))
  const numeric = header.map(
    (_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === 'number' || row[i] === null),
  )
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (numeric[i] === true ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd()
  return [line(header), line(widths.map((width) => '-'.repeat(width))), ...text.map(line)]
    .map((row) => `${row}\n`)
    .join('')
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
