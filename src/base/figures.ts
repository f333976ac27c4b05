import { visible } from './visible-text.ts'
import { day, hour, minute } from './time.ts'

/**
 * Formats a number as `1,234,567.5`, with at most three decimals. Without `Intl`, because setting up its formatter
 * takes longer than all lines of a run.
 */
export function number(value: number): string {
  const [integer = '', ...decimals] = String(Math.round(value * 1000) / 1000).split('.')
  return [integer.replaceAll(/\B(?=(?:\d{3})+$)/g, ','), ...decimals].join('.')
}

/** Formats a count as `1,234,567`. */
export function formatCount(count: number): string {
  return number(Math.round(count))
}

/** Formats a count with three digits, for narrow columns: `725 k`, `1.16 M`. */
export function brief(count: number): string {
  for (const [size, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e4, 'k'],
  ] as const) {
    if (count < size) continue
    const scaled = count / (unit === 'k' ? 1000 : size)
    return `${scaled >= 100 ? Math.round(scaled) : scaled >= 10 ? scaled.toFixed(1) : scaled.toFixed(2)} ${unit}`
  }
  return formatCount(count)
}

/** Formats a share in per cent: `100 %` only if nothing is missing, `0 %` only if the part is empty. */
export function percent(part: number, all: number): string {
  if (all <= 0) return 'none'
  const share = (part / all) * 100
  if (part >= all) return '100 %'
  if (part <= 0) return '0 %'
  if (share > 99.99) return '> 99.99 %'
  if (share < 0.01) return '< 0.01 %'
  return share > 99 || share < 1 ? `${floorTo(share, 2)} %` : `${floorTo(share, 1)} %`
}

function floorTo(value: number, digits: number): string {
  const size = 10 ** digits
  return (Math.floor(value * size) / size).toFixed(digits)
}

/** Formats bytes with a decimal unit, from `B` to `TB`. */
export function bytes(count: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let left = count
  let unit = 0
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000
    unit++
  }
  return `${left >= 100 || unit === 0 ? Math.round(left) : left.toFixed(1)} ${units[unit] ?? ''}`
}

/** Formats a span of time in its two largest units: `3 d 4 h`, `12 min`, `40 s`. */
export function span(seconds: number): string {
  if (seconds < 0) return `-${span(-seconds)}`
  const total = Math.round(seconds)
  const parts: [number, number, string, string][] = [
    [day, hour, 'd', 'h'],
    [hour, minute, 'h', 'min'],
    [minute, 1, 'min', 's'],
  ]
  for (const [big, small, bigName, smallName] of parts) {
    if (total < big) continue
    const rest = Math.floor((total % big) / small)
    const first = `${Math.floor(total / big)} ${bigName}`
    return rest === 0 || total >= 20 * big ? first : `${first} ${rest} ${smallName}`
  }
  return total < 10 && !Number.isInteger(seconds) ? `${seconds.toFixed(1)} s` : `${total} s`
}

/** Formats a timestamp as `2026-11-21 16:03 UTC`. */
export function moment(at: number): string {
  return `${new Date(at * 1000).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** Formats a timestamp as `2026-11-21`, with its time unless it is midnight. */
export function instant(at: number): string {
  const text = new Date(at * 1000).toISOString()
  return at % day === 0 ? text.slice(0, 10) : text.slice(0, 16).replace('T', ' ')
}

/** Formats a number of months since 1970-01 as `2026-11`. */
export function monthName(index: number): string {
  return `${1970 + Math.floor(index / 12)}-${String((((index % 12) + 12) % 12) + 1).padStart(2, '0')}`
}

/** Formats a count with its noun: `1 file`, `2 files`. */
export function several(count: number, singular: string, many = `${singular}s`): string {
  return `${formatCount(count)} ${count === 1 ? singular : many}`
}

/** Formats a number of files and their total size. */
export function filesInWords({ files, bytes: size }: { readonly files: number; readonly bytes: number }): string {
  return `${several(files, 'file')}, ${bytes(size)}`
}

/** Formats counts by name, as in `3 changed, 1,200 null filled`; names with a count of 0 are left out. */
export function formatCounts(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  return some.map(([name, count]) => `${formatCount(count)} ${name.replaceAll('_', ' ')}`).join(', ')
}

/** A column ready for layout: cells without control characters, and whether they are aligned to the right. */
interface TextColumn {
  readonly name: string
  readonly cells: readonly string[]
  readonly right: boolean
}

type Laid = TextColumn & { readonly width: number }

const gap = '  '

/**
 * Lays out columns under their names; a table wider than `width` becomes several blocks of columns, one below the
 * other.
 */
export function layColumns(columns: readonly TextColumn[], width = Number.POSITIVE_INFINITY): string {
  const laid = columns.map((column) => ({ ...column, width: Math.max(...[column.name, ...column.cells].map(wide), 1) }))
  return blocks(laid, width)
    .map((block) => linesOf(block).join(''))
    .join('\n')
}

/** Formats rows as an aligned table, with numbers aligned to the right. */
export function table(header: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const text = (cell: string | number | null | undefined): string =>
    typeof cell === 'number' ? number(cell) : visible(cell ?? '')
  const numeric = (i: number): boolean =>
    rows.length > 0 && rows.every((row) => typeof row[i] === 'number' || row[i] === null)
  return layColumns(
    header.map((name, i) => ({ name: visible(name), cells: rows.map((row) => text(row[i])), right: numeric(i) })),
  )
}

/** Shortens a text to at most `longest` terminal columns, with `…` in place of the rest. */
export function cut(text: string, longest: number): string {
  if (wide(text) <= longest) return text
  let short = ''
  let used = 1
  for (const sign of text) {
    used += wide(sign)
    if (used > longest) break
    short += sign
  }
  return `${short}…`
}

const doubleWidth = /[ᄀ-ᅟ⺀-꓏가-힣豈-﫿︰-﹏＀-｠￠-￦\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/gu

/** Returns the width of a text in terminal columns. */
function wide(text: string): number {
  // oxlint-disable-next-line no-control-regex
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  const marks = text.match(/\p{M}/gu)?.length ?? 0
  return [...text].length - marks + (text.match(doubleWidth)?.length ?? 0)
}

function blocks(columns: readonly Laid[], width: number): readonly (readonly Laid[])[] {
  const out: Laid[][] = []
  let used = 0
  for (const column of columns) {
    const block = out.at(-1)
    if (block === undefined || used + gap.length + column.width > width) {
      out.push([column])
      used = column.width
    } else {
      block.push(column)
      used += gap.length + column.width
    }
  }
  return out
}

function linesOf(block: readonly Laid[]): readonly string[] {
  const line = (cells: readonly string[]): string => {
    const padded = cells.map((cell, k) => {
      const column = block[k]
      const room = ' '.repeat(Math.max(0, (column?.width ?? 0) - wide(cell)))
      return column?.right === true ? room + cell : cell + room
    })
    return `${padded.join(gap).trimEnd()}\n`
  }
  const rows = Array.from({ length: block[0]?.cells.length ?? 0 }, (_, i) => block.map(({ cells }) => cells[i] ?? ''))
  return [line(block.map(({ name }) => name)), line(block.map((column) => '-'.repeat(column.width))), ...rows.map(line)]
}

/** A label and its text; `false` rows are left out. */
export type LabelledRow = readonly [label: string, text: string] | false

/** Formats one line for each label and its text, with the texts aligned. */
export function formatLabelled(rows: readonly LabelledRow[], least = 13): string {
  // A label longer than the column widens it for all rows.
  const wide = Math.max(least, ...rows.map((row) => (row === false ? 0 : row[0].length + 1)))
  return rows.flatMap((row) => (row === false ? [] : [`${row[0].padEnd(wide)}${row[1]}\n`])).join('')
}

/**
 * Wraps a label and its text into lines of at most 80 columns, broken between words; further lines align with the text.
 */
export function wrapLine(line: string, indent = 13): string[] {
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
