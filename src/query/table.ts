import type { Cell } from '../lake/store/engine.ts'
import { visible } from '../base/visible-text.ts'
import { jsonForm } from './projection.ts'
import { cut, layColumns } from '../base/figures.ts'

/**
 * Lays out rows for people: numbers to the right, NULL visible, instants as short as all of them allow. A table wider
 * than `width` is split into several blocks of columns, one under the other. Texts longer than `longest` are cut with
 * `…`; the other formats never cut.
 */
export function layTable(
  names: readonly string[],
  types: readonly string[],
  columns: readonly (readonly Cell[])[],
  { width, longest = Math.max(12, Math.floor(width / 2)) }: { readonly width: number; readonly longest?: number },
): string {
  const laid = names.map((name, i) => {
    const [type = '', cells = []] = [types[i], columns[i]]
    return {
      name: cut(visible(name), Math.max(longest, 24)),
      cells: instants.test(type) ? shortened(cells) : cells.map((cell) => formatCell(cell, longest)),
      right: numbers.test(type),
    }
  })
  return layColumns(laid, width)
}

const instants = /^TIMESTAMP(?: WITH TIME ZONE)?$/
const numbers = /^(?:U?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?|UINTEGER|BIGNUM|FLOAT|DOUBLE|DECIMAL\b.*)$/

function formatCell(cell: Cell, longest: number): string {
  if (cell === null) return 'NULL'
  if (cell instanceof Uint8Array) return cut(`\\x${Buffer.from(cell).toString('hex')}`, longest)
  const text = Object.is(cell, -0) ? '-0' : typeof cell === 'object' ? jsonForm(cell) : String(cell)
  return cut(visible(text), longest)
}

/** Formats instants without the parts that are zero in all of them. */
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
