/** What the lake says of a table without its time, as `pitlake when` prints it. */

import { folded, opened, python, shell } from './copies.js'
import { button, cellOf, figure, html, moment, plainCell, section, table } from './dom.js'
import { isoOf } from './questions.js'
import { change } from './state.js'

/** Ranges that are shown of each. */
const mostRanges = 3

const verdicts = {
  dated: ['clean', 'The lake answers the whole table at these times.'],
  contradicted: ['leak', 'The lake answers the whole table at these times, but not at the claimed one.'],
  mixed: ['undecided', 'The columns do not belong together: no time is common to all of them.'],
  unmatched: ['undecided', 'At no time does the lake answer all cells of each column.'],
}

/** The parts that show an answer about a file, with what its sender said of it. */
export function partsOf(told, name, fields) {
  const { verdict, kind, rows, cells, as_of, observed_as_of, contradiction } = told
  const [tone, words] = verdicts[verdict]
  const facts = { table: `${kind}, ${several(rows, 'row')}, ${several(cells, 'cell')} compared`,
    as_of: choiceOf(as_of), observed_as_of: textsOf(observed_as_of) }
  const given = Object.entries(fields).map(([option, value]) => `${option} ${value}`)
  if (given.length > 0) facts['as you said'] = given.join(', ')
  return [html`<h2>${name}</h2>`, html`<div class="verdict ${tone}"><p>${words}</p></div>`,
    html`<dl class="facts">${Object.entries(facts).map(([word, fact]) =>
      [html`<dt>${word}</dt>`, html`<dd data-fact=${word}>${fact}</dd>`])}</dl>`,
    section('What each column was taken for', table(columnsOf(told), 'Columns', { cell: rangesCell })),
    contradiction === null ? '' : contradicting(contradiction),
    folded(spelt(name, fields), 'the question', 'Python or a command line')]
}

const several = (count, word) => `${figure(count)} ${word}${count === 1 ? '' : 's'}`

/** A row for each column of the table; its own ranges where they are not those of the whole. */
function columnsOf({ verdict, kind, mapping: { time, asset, record, resource }, columns, ignored }) {
  const own = (as_of, observed_as_of) => (verdict === 'dated' ? {} : { as_of, observed_as_of })
  const timeOf = kind === 'panel' || kind === 'universe' ? 'time of the decision' : 'start of the interval'
  const about = [[time, timeOf], [asset, 'asset'], [record, `id of a record of ${resource}`]]
  const aside = [...about.filter(([column]) => column !== null),
    ...ignored.map(({ column, reason }) => [column, `ignored: ${reason}`])]
    .map(([column, words]) => ({ column, taken_for: words, cells: '', ...own('', '') }))
  const compared = columns.map((one) =>
    ({ column: one.column, taken_for: seriesOf(one), cells: one.cells, ...own(one.as_of, one.observed_as_of) }))
  const lead = aside.length - ignored.length
  return [...aside.slice(0, lead), ...compared, ...aside.slice(lead)]
}

function seriesOf({ metric, field, interval, currency, exchange, network, by, rounding }) {
  const series = [metric ?? `field ${field}`, interval, currency, exchange, network].filter((part) => part !== null)
  const guess = { option: ' (as you named it)', name: '', values: ' (guessed by its values)' }[by]
  const digits = { single: 'to 32-bit floats', decimals: `to ${rounding?.digits} decimals`,
    significant: `to ${rounding?.digits} significant digits` }[rounding?.kind]
  return `${series.join(' ')}${guess}${digits === undefined ? '' : `, rounded ${digits}`}`
}

/** The cells that contradict a time: the first of them, and how many there are. */
function contradicting({ axis, at, claimed, cells, first }) {
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

/** A cell with the ranges of a column or of a value, each of which can be chosen. */
function rangesCell(value, name) {
  if (!Array.isArray(value)) return plainCell(value)
  return cellOf('td', name !== 'observed_as_of' ? choiceOf(value) : textsOf(value))
}

/** Values that differ are compared digit by digit, so that none is left out. */
function exactCell(value, name) {
  if (name.startsWith('in_the') && typeof value === 'number') return cellOf('td', String(value), 'number')
  return rangesCell(value, name)
}

/** The last ranges, each made by a function, and how many there are before. */
function lastOf(ranges, made) {
  if (ranges.length === 0) return ['no time']
  const earlier = ranges.length - mostRanges
  const lines = ranges.slice(-mostRanges).map((range) => html`<div>${made(range)}</div>`)
  return earlier > 0 ? [...lines, html`<div>and ${figure(earlier)} earlier</div>`] : lines
}

const textsOf = (ranges) => lastOf(ranges, rangeText)

/** Ranges of `as_of`: choosing one looks at what was known then. */
const choiceOf = (ranges) => lastOf(ranges, (range) => {
  const at = instantIn(range)
  return button(rangeText(range), () => change({ as_of: at }), `set as_of to ${at === '' ? 'now' : moment(at)}`)
})

/** An instant within a range: its first, where it has one. */
function instantIn({ from, until }) {
  if (from !== null) return from.replace(/\.0+Z$/, 'Z')
  return until === null ? '' : isoOf(Date.parse(until) - 1)
}

function rangeText({ from, until }) {
  if (from === null) return until === null ? 'any time' : `before ${moment(until)}`
  return until === null ? `from ${moment(from)} on` : `from ${moment(from)}, before ${moment(until)}`
}

/** The same question in Python and on a command line, for a file in the folder of the reader. */
function spelt(name, fields) {
  const isSwitch = (option) => option === 'skip_nulls' || option === 'follow_renames'
  const flags = Object.entries(fields).map(([option, value]) =>
    ` --${option.replace('_', '-')}${isSwitch(option) ? '' : ` ${shell(value)}`}`)
  const keywords = Object.entries(fields).map(([option, value]) =>
    `, ${option}=${isSwitch(option) ? 'True' : python(value)}`)
  const file = name.startsWith('-') ? `./${name}` : name
  return { Python: `${opened({})}\ndating = lake.when(${python(name)}${keywords.join('')})`,
    'Command line': `pitlake when ${shell(file)}${flags.join('')}` }
}
