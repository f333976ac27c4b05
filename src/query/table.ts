import type { Cell } from '../store/engine.ts'
import { visible } from '../visible.ts'
import { jsonForm } from './projection.ts'

/** How wide a table may be, and what stands for NULL. */
export interface TableOptions {
  readonly width: number
  /** Texts longer than this are cut with `…`; the other formats never cut. */
  readonly longest?: number
}

/** A column ready to be laid out. */
interface Laid {
  readonly name: string
  readonly cells: readonly string[]
  readonly right: boolean
  readonly width: number
}

const gap = '  '

/**
 * Rows for people: numbers to the right, NULL visible, instants as short as all of them allow. A table wider than
 * `width` is given in several blocks of columns, one under the other.
 */
export function layTable(
  names: readonly string[],
  types: readonly string[],
  columns: readonly (readonly Cell[])[],
  { width, longest = Math.max(12, Math.floor(width / 2)) }: TableOptions,
): string {
  const laid = names.map((name, i) => lay(name, types[i] ?? '', columns[i] ?? [], longest))
  return blocks(laid, width)
    .map((block) => linesOf(block).join(''))
    .join('\n')
}

function lay(name: string, type: string, cells: readonly Cell[], longest: number): Laid {
  const right = isNumeric(type)
  const short = isInstant(type) ? shortened(cells) : cells.map((cell) => shown(cell, longest))
  const title = cut(visible(name), Math.max(longest, 24))
  const width = Math.max(wide(title), ...short.map(wide), 1)
  return { name: title, cells: short, right, width }
}

function isNumeric(type: string): boolean {
  return /^(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|UINTEGER|BIGNUM|FLOAT|DOUBLE|DECIMAL\b.*)$/.test(type)
}

function isInstant(type: string): boolean {
  return type === 'TIMESTAMP WITH TIME ZONE' || type === 'TIMESTAMP'
}

function shown(cell: Cell, longest: number): string {
  if (cell === null) return 'NULL'
  if (cell instanceof Uint8Array) return cut(`\\x${Buffer.from(cell).toString('hex')}`, longest)
  const text = typeof cell === 'string' ? cell : typeof cell === 'number' ? numeral(cell) : spelt(cell)
  return cut(visible(text), longest)
}

function spelt(cell: Exclude<Cell, string | number | null | Uint8Array>): string {
  return typeof cell === 'bigint' || typeof cell === 'boolean' ? String(cell) : jsonForm(cell)
}

function numeral(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value)
}

/** Instants without the parts that are zero in all of them. */
function shortened(cells: readonly Cell[]): string[] {
  const texts = cells.map((cell) => (typeof cell === 'string' ? cell : 'NULL'))
  const parts = texts.map((text) => /^(\S+)T(\d\d:\d\d)(:\d\d)(\.\d{6})(Z?)$/.exec(text))
  const needs = (part: number, zero: string): boolean => parts.some((match) => match !== null && match[part] !== zero)
  const micros = needs(4, '.000000')
  const seconds = micros || needs(3, ':00')
  const minutes = seconds || needs(2, '00:00')
  return texts.map((text, i) => {
    const match = parts[i]
    if (!match) return text
    const [, date = '', time = '', second = '', fraction = '', zone = ''] = match
    if (!minutes) return date
    return `${date} ${time}${seconds ? second : ''}${micros ? fraction : ''}${zone}`
  })
}

function cut(text: string, longest: number): string {
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
