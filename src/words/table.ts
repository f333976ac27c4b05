import { number } from './figures.ts'
import { visible } from '../visible.ts'

/** A column ready to be laid out: texts that move no cursor, and whether they stand to the right. */
interface TextColumn {
  readonly name: string
  readonly cells: readonly string[]
  readonly right: boolean
}

type Laid = TextColumn & { readonly width: number }

const gap = '  '

/** Columns under their names; a table wider than `width` is given in several blocks of columns, one under the other. */
export function layColumns(columns: readonly TextColumn[], width = Number.POSITIVE_INFINITY): string {
  const laid = columns.map((column) => ({ ...column, width: Math.max(...[column.name, ...column.cells].map(wide), 1) }))
  return blocks(laid, width)
    .map((block) => linesOf(block).join(''))
    .join('\n')
}

/** Rows as an aligned table; numbers to the right. */
export function table(header: readonly string[], rows: readonly (readonly (string | number | null)[])[]): string {
  const text = (cell: string | number | null | undefined): string =>
    typeof cell === 'number' ? number(cell) : visible(cell ?? '')
  const numeric = (i: number): boolean =>
    rows.length > 0 && rows.every((row) => typeof row[i] === 'number' || row[i] === null)
  return layColumns(
    header.map((name, i) => ({ name: visible(name), cells: rows.map((row) => text(row[i])), right: numeric(i) })),
  )
}

/** The text on so many places of a terminal, with `…` where more stood. */
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

/** Places on a terminal. */
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

/** A label and its text; what is false is left out. */
export type LabelledRow = readonly [label: string, text: string] | false

/** A line for each label and its text, the texts one below the other. */
export function labelled(rows: readonly LabelledRow[], wide = 13): string {
  return rows.flatMap((row) => (row === false ? [] : [`${row[0].padEnd(wide)}${row[1]}\n`])).join('')
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
