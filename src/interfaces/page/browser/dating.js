/** The answer about the time of a table, with the words of `pitlake when`. */

import { flagTexts, keywordTexts, opened, python, shell } from './command-texts.js'
import { foldedTexts } from './copies.js'
import { button, cellOf, figure, html, moment, plainCell, section, table } from './dom.js'
import { isoOf } from './questions.js'
import { change } from './state.js'

/** Maximum number of ranges that are shown for a column. */
const mostRanges = 3

const verdicts = {
  dated: ['clean', 'The lake answers the whole table at these times.'],
  contradicted: ['leak', 'The lake answers the whole table at these times, but not at the claimed one.'],
  mixed: ['undecided', 'The columns do not belong together: no time is common to all of them.'],
  unmatched: ['undecided', 'At no time does the lake answer all cells of each column.'],
}

/** The parts that show an answer about a file, with the fields that were sent with it. */
export function partsOf(datedTable, name, fields) {
  const { verdict, kind, rows, cells, as_of, observed_as_of, contradiction } = datedTable
  const [tone, sentence] = verdicts[verdict]
  const facts = { table: `${kind}, ${several(rows, 'row')}, ${several(cells, 'cell')} compared`,
    as_of: rangeButtons(as_of), observed_as_of: rangeTexts(observed_as_of) }
  const givenFields = Object.entries(fields).map(([option, value]) => `${option} ${value}`)
  if (givenFields.length > 0) facts['as you said'] = givenFields.join(', ')
  return [html`<h2>${name}</h2>`, html`<div class="verdict ${tone}"><p>${sentence}</p></div>`,
    html`<dl class="facts">${Object.entries(facts).map(([label, fact]) =>
      [html`<dt>${label}</dt>`, html`<dd data-fact=${label}>${fact}</dd>`])}</dl>`,
    section('What each column was taken for', table(columnRows(datedTable), 'Columns', { cell: rangesCell })),
    contradiction === null ? '' : contradictionSection(contradiction),
    foldedTexts(questionTexts(name, fields), 'the question', 'Python or a command line')]
}

const several = (count, word) => `${figure(count)} ${word}${count === 1 ? '' : 's'}`

/** A row for each column of the table, with its own ranges if they differ from those of the table. */
function columnRows({ verdict, kind, mapping: { time, asset, record, resource }, columns, ignored }) {
  const ranges = (as_of, observed_as_of) => (verdict === 'dated' ? {} : { as_of, observed_as_of })
  const timeMeaning = kind === 'panel' || kind === 'universe' ? 'time of the decision' : 'start of the interval'
  const rowWithoutCells = ([column, taken_for]) => ({ column, taken_for, cells: '', ...ranges('', '') })
  const keys = [[time, timeMeaning], [asset, 'asset'], [record, `id of a record of ${resource}`]]
    .filter(([column]) => column !== null)
  const compared = columns.map((column) => ({ column: column.column, taken_for: seriesText(column), cells: column.cells,
    ...ranges(column.as_of, column.observed_as_of) }))
  const ignoredColumns = ignored.map(({ column, reason }) => [column, `ignored: ${reason}`])
  return [...keys.map(rowWithoutCells), ...compared, ...ignoredColumns.map(rowWithoutCells)]
}

function seriesText({ metric, field, interval, currency, exchange, network, by, rounding }) {
  const series = [metric ?? `field ${field}`, interval, currency, exchange, network].filter((part) => part !== null)
  const guess = { option: ' (as you named it)', name: '', values: ' (guessed by its values)' }[by]
  const digits = { single: 'to 32-bit floats', decimals: `to ${rounding?.digits} decimals`,
    significant: `to ${rounding?.digits} significant digits` }[rounding?.kind]
  return `${series.join(' ')}${guess}${digits === undefined ? '' : `, rounded ${digits}`}`
}

/** The cells that contradict a time: the first of them, and their number. */
function contradictionSection({ axis, at, claimed, cells, first }) {
  const time = `${axis} ${at === null ? 'before everything' : moment(at)}`
  const verb = cells === 1 ? 'contradicts' : 'contradict'
  const head = claimed ? `${several(cells, 'cell')} ${verb} the claimed ${time}.`
    : `The best time is ${time}; ${several(cells, 'cell')} ${verb} it.`
  const rows = first.map(({ row, column, asset, time: t, value, answer, is_listed, as_of }) => ({ row, column, asset, t,
    in_the_table: value, in_the_lake: is_listed ? answer : 'no such row', 'times of the table’s value': as_of }))
  const more = cells > first.length ? [html`<p class="quiet">${figure(cells - first.length)} more</p>`] : []
  return section('Cells that contradict', html`<p>${head}</p>`,
    table(rows, 'Contradicting cells', { cell: exactCell }), more)
}

/** A cell with the ranges of a column or of a value. */
function rangesCell(value, name) {
  if (!Array.isArray(value)) return plainCell(value)
  return cellOf('td', name !== 'observed_as_of' ? rangeButtons(value) : rangeTexts(value))
}

/** Values that differ are compared digit by digit, so that none is left out. */
function exactCell(value, name) {
  if (name.startsWith('in_the') && typeof value === 'number') return cellOf('td', String(value), 'number')
  return rangesCell(value, name)
}

/** The last ranges, each in the form that a function gives it, and the number of earlier ones. */
function lastRanges(ranges, formOf) {
  if (ranges.length === 0) return ['no time']
  const earlier = ranges.length - mostRanges
  const lines = ranges.slice(-mostRanges).map((range) => html`<div>${formOf(range)}</div>`)
  return earlier > 0 ? [...lines, html`<div>and ${figure(earlier)} earlier</div>`] : lines
}

const rangeTexts = (ranges) => lastRanges(ranges, rangeText)

/** Ranges of `as_of` as buttons, which set the instant of the page. */
const rangeButtons = (ranges) => lastRanges(ranges, (range) => {
  const at = instantIn(range)
  return button(rangeText(range), () => change({ as_of: at }), `set as_of to ${at === '' ? 'now' : moment(at)}`)
})

/** An instant within a range: its first if it has one. */
function instantIn({ from, until }) {
  if (from !== null) return from.replace(/\.0+Z$/, 'Z')
  return until === null ? '' : isoOf(Date.parse(until) - 1)
}

function rangeText({ from, until }) {
  if (from === null) return until === null ? 'any time' : `before ${moment(until)}`
  return until === null ? `from ${moment(from)} on` : `from ${moment(from)}, before ${moment(until)}`
}

/** The same question in Python and on a command line, for a file in the folder of the user. */
function questionTexts(name, fields) {
  const file = name.startsWith('-') ? `./${name}` : name
  return { Python: `${opened({})}\ndating = lake.when(${[python(name), ...keywordTexts(fields)].join(', ')})`,
    'Command line': `pitlake when ${[shell(file), ...flagTexts(fields)].join(' ')}` }
}
