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

/** Bytes as people read them. */
export function bytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let size = count
  let unit = 0
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit++
  }
  return `${size >= 100 || unit === 0 ? Math.round(size) : size.toFixed(1)} ${units[unit] ?? ''}`
}

/** Seconds as people read them: `1 h 12 min`, `40 s`. */
export function seconds(total: number): string {
  if (total < 60) return `${Math.round(total)} s`
  const minutes = Math.round(total / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
