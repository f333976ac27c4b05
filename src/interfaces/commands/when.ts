import { resolve } from 'node:path'
import { LakeError, usage } from '../../base/errors.ts'
import { formatCount, several } from '../../base/figures.ts'
import { kinds } from '../../base/option-kinds.ts'
import { isThere } from '../../lake/store/files.ts'
import { engineMemory } from '../../lake/store/memory.ts'
import { readOptions } from '../../query/read-options.ts'
import {
  type ContradictedCell,
  type Contradiction,
  type DatedColumn,
  type DatedTable,
  dateFile,
  type TimeRange,
} from '../../trust/dating/dating.ts'
import { datingOptions } from '../../trust/dating/options.ts'
import type { CellValue, Rounding } from '../../trust/dating/value-matcher.ts'
import { timeoutOption, withinTime } from '../cli/context.ts'
import { answering } from '../cli/spec.ts'
import { flagsOf, givenOptions } from './query.ts'

export const whenCommand = answering({
  viewsBefore: true,
  args: { '<file>': { kind: kinds.file, about: 'the table, CSV (also .gz or .zst) or Parquet' } },
  options: { ...flagsOf(datingOptions), ...timeoutOption },
  details: `pitlake compares each cell with everything that the lake ever knew. The result is the range of as_of in which the lake answers
all cells, and the range of observed_as_of. Rows may be missing, columns may be in any order, and numbers may be rounded.

The output shows what each column was taken for. If a guess is wrong, name it: --metrics column=path, --ts or --t for the time.
Name the options with which a panel was made, such as --latency. A panel made with --back cannot be dated.

  panel      asset, ts and a column for each metric, as pitlake panel writes it
  points     asset, t and a column for each metric, or metric and value in each row
  vintages   asset, metric, t, available_at and value, as in the view vintages
  universe   product_id and columns of the view universe; or id and columns of issuers, deployments …

Exit 0: the lake answers the table at the times shown. Exit 4: no time is common to all cells, or not the claimed one; the first
cells that contradict are shown.

Example: pitlake when panel.parquet

Example: pitlake when scores.csv --metrics price=price_usd --claimed 2024-06-01`,
  answer: async (call) => {
    const [file = ''] = call.args
    const path = resolve(call.cwd, file)
    if (!isThere(path)) throw usage(file, { expected: 'a CSV or Parquet file', got: 'no such file' })
    const options = readOptions(datingOptions, givenOptions(datingOptions, call.options), 'terminal')
    const folder = call.settings.data
    const run = { folder, ...withinTime(call) }
    const table = await dateFile({ path, subject: file, options }, run, engineMemory(1 / 2))
    return { document: table, words: () => datedText(table), error: contradictionError(file, table) }
  },
})

/** Builds the error of a table that contradicts the lake or a claim; null if there is none. */
function contradictionError(file: string, { verdict, contradiction, kind }: DatedTable): LakeError | null {
  if (verdict === 'dated' || contradiction === null) return null
  const { axis, at, cells, claimed } = contradiction
  if (claimed) {
    const got = `${several(cells, 'cell')} that the lake answers differently`
    return new LakeError('integrity', { subject: `${file}: ${axis} ${at}`, got, next: 'look at the first of them' })
  }
  const limit = kind === 'panel' ? '; a panel made with --back cannot be dated' : ''
  const got = verdict === 'mixed' ? 'columns of different times' : 'cells that the lake never answered together'
  return new LakeError('integrity', {
    subject: file,
    expected: 'a time at which the lake answers every cell',
    got,
    next: `look at the first of them; if a column was taken for a wrong metric, name it with --metrics${limit}`,
  })
}

/** Formats what is known about the time of a table. */
function datedText(table: DatedTable): string {
  const { kind, rows, cells, columns, ignored, as_of, observed_as_of, contradiction, verdict } = table
  const lines = [
    `table           ${kind}, ${several(rows, 'row')}, ${several(cells, 'cell')} compared`,
    `as_of           ${rangesText(as_of)}`,
    `observed_as_of  ${rangesText(observed_as_of)}`,
    '',
    ...mappingLines(table),
    ...columns.flatMap((column) => columnLines(column, verdict)),
    ...ignored.map(({ column, reason }) => `  ${column}  ignored: ${reason}`),
    ...(contradiction === null ? [] : ['', ...contradictionLines(contradiction)]),
  ]
  return `${lines.join('\n')}\n`
}

function mappingLines({ mapping: { time, asset, record, resource }, kind }: DatedTable): string[] {
  const means = kind === 'panel' || kind === 'universe' ? 'time of the decision' : 'start of the interval'
  return [
    ...(time === null ? [] : [`  ${time}  ${means}`]),
    ...(asset === null ? [] : [`  ${asset}  asset`]),
    ...(record === null ? [] : [`  ${record}  id of a record of ${resource}`]),
  ]
}

function columnLines(column: DatedColumn, verdict: DatedTable['verdict']): string[] {
  const { metric, field, interval, currency, exchange, network, by, rounding } = column
  const series = [metric ?? `field ${field}`, interval, currency, exchange, network].filter((part) => part !== null)
  const guess = { option: '', name: '', values: ' (guessed by its values)' }[by]
  const line = `  ${column.column}  ${series.join(' ')}${guess}${roundingText(rounding)}`
  if (verdict === 'dated') return [line]
  return [line, `    as_of ${rangesText(column.as_of)}; observed_as_of ${rangesText(column.observed_as_of)}`]
}

function roundingText(rounding: Rounding | null): string {
  if (rounding === null) return ''
  const { kind, digits } = rounding
  if (kind === 'single') return ', rounded to 32-bit floats'
  return kind === 'decimals' ? `, rounded to ${digits} decimals` : `, rounded to ${digits} significant digits`
}

/** Ranges that are shown of each. */
const mostRanges = 3

function rangesText(ranges: readonly TimeRange[]): string {
  if (ranges.length === 0) return 'no time'
  const shown = ranges.slice(-mostRanges).map(rangeText).join(', or ')
  const more = ranges.length - mostRanges
  return more > 0 ? `${shown}, and ${formatCount(more)} earlier` : shown
}

function rangeText({ from, until }: TimeRange): string {
  if (from === null) return until === null ? 'any time' : `before ${until}`
  return until === null ? `from ${from} on` : `from ${from}, before ${until}`
}

function contradictionLines({ axis, at, claimed, cells, first }: Contradiction): string[] {
  const time = `${axis} ${at ?? 'before everything'}`
  const verb = cells === 1 ? 'contradicts' : 'contradict'
  const head = claimed
    ? `${several(cells, 'cell')} ${verb} the claimed ${time}`
    : `the best time is ${time}; ${several(cells, 'cell')} ${verb} it`
  return [head, ...first.slice(0, 5).flatMap(cellLines), ...(cells > 5 ? [`  … ${formatCount(cells - 5)} more`] : [])]
}

function cellLines(cell: ContradictedCell): string[] {
  const { row, column, asset, time, value, answer, is_listed, as_of } = cell
  const place = [`row ${row}`, column, asset, time].filter((part) => part !== null).join(', ')
  const storedText = is_listed ? valueText(answer) : 'no such row'
  return [
    `  ${place}: ${valueText(value)} in the table, ${storedText} in the lake`,
    `    the table's value: ${rangesText(as_of)}`,
  ]
}

function valueText(value: CellValue): string {
  return value === null ? 'NULL' : String(value)
}
