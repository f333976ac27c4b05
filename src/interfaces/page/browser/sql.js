/** A query of a user: its rows as known at the instant, notes about them, and whether the query looks ahead. */

import { download, drawingRequests, isSuperseded, notesOf, queryFields, request, RequestSeries, rows, showTrouble }
  from './requests.js'
import { copies, knowledge } from './copies.js'
import { button, field, figure, form, html, list, moment, quiet, select, svg, table } from './dom.js'
import { axes, scale } from './picture.js'
import { change, state } from './state.js'

export const title = 'SQL'
/** No part of the state redraws this view, so that nothing moves while a user types. */
export const whole = []

/** Maximum number of rows that are shown. */
const mostRows = 1000
const example = `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-01-01', '2024-03-01', '1 day'))
SELECT ts, v, age FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h') ORDER BY ts`
/** Formats of a whole result: the button's label, the format, and the ending of the file. */
const downloadFormats = [['CSV', 'csv', 'csv'], ['Parquet', 'parquet', 'parquet'], ['Arrow', 'arrow', 'arrows']]

/** Parts of the view: the text, its completions, the rows, and the verdict on look-ahead. */
let parts = null
/** Requests for the rows and for the verdict: a later query ends those of an earlier one. */
const resultRequests = new RequestSeries()
const verdictRequests = new RequestSeries()

/** Words that a query may contain: views, columns, macros, metrics and keywords of SQL. */
const wordsSql = `SELECT DISTINCT name FROM (
  SELECT column_name AS name FROM duckdb_columns() WHERE NOT internal
  UNION ALL SELECT if(schema_name = 'main', '', schema_name || '.') || view_name FROM duckdb_views() WHERE NOT internal
  UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal
  UNION ALL SELECT metric FROM endpoints
  UNION ALL SELECT unnest(string_split('SELECT FROM WHERE GROUP ORDER LIMIT WITH JOIN LEFT CASE WHEN THEN ELSE END OVER
PARTITION DISTINCT BETWEEN INTERVAL UNION HAVING QUALIFY FILTER UNNEST', ' '))) ORDER BY name`
const mostCompletions = 12

export async function draw(main) {
  const text = html`<textarea aria-label="SQL" spellcheck="false" aria-autocomplete="list" aria-controls="words"
    value=${state.sql || example} @input=${() => showCompletions().catch(showTrouble)} @keydown=${handleKey}></textarea>`
  const completions = html`<ul class="words" id="words" role="listbox" aria-label="Completions"></ul>`
  const result = html`<section aria-live="polite"></section>`
  const verdict = html`<section aria-live="polite"></section>`
  parts = { text, completions, result, verdict }
  const downloads = downloadFormats.map(([label, format, ending]) => {
    const save = () => download('query', queryFields(currentQuery(), state.as_of), format, ending).catch(showTrouble)
    return button(label, save, `the whole result as ${label}`)
  })
  const hint = quiet('one SELECT over the views; Ctrl+Enter runs it, Tab takes a completion')
  main.replaceChildren(text, completions, form(button('Run', submit, 'Ctrl+Enter'), downloads, hint),
    html`<div class="sides">${result}${verdict}</div>`)
  if (state.sql !== '') await runQuery()
}

/** Runs the query again at a different instant. */
export async function step() {
  if (document.activeElement !== parts.text) parts.text.value = state.sql || example
  if (state.sql !== '') await runQuery()
}

function submit() {
  if (state.sql === parts.text.value) runQuery().catch(showTrouble)
  else change({ sql: parts.text.value })
}

const currentQuery = () => (state.sql || parts.text.value).replace(/[;\s]+$/, '')

async function runQuery() {
  const sql = currentQuery()
  parts.verdict.replaceChildren()
  verdictRequests.next()
  const querySignal = resultRequests.next()
  const signal = AbortSignal.any([drawingRequests.signal, querySignal])
  const answer = await answerOf(sql, signal).catch((error) => {
    // A later query shows its own answer.
    if (querySignal.aborted) return null
    throw error
  })
  if (answer === null) return
  const shown = answer.rows.slice(0, mostRows)
  showResult(sql, shown, answer)
  const instantColumns = Object.keys(shown[0] ?? {}).filter((name) => /^\d{4}-\d\d-\d\d(T|$)/.test(String(shown[0][name])))
  const ts = [state.ts, 'ts', instantColumns[0]].find((name) => instantColumns.includes(name))
  if (ts === undefined)
    return showVerdict('Look-ahead', quiet('No column has the decision time of each row, so there is nothing to test.'))
  showVerdict('Look-ahead', quiet('Testing it without the future …'))
  const label = 'instant of each row'
  void judge(sql, ts, field(label, select(instantColumns, ts, (name) => change({ ts: name }), label)))
}

async function answerOf(sql, signal) {
  const limited = queryFields(`SELECT * FROM (${sql}\n) LIMIT ${mostRows + 1}`, state.as_of)
  const answer = await request('query?format=json', limited, signal)
  return { rows: await answer.json(), notes: notesOf(answer) }
}

function showResult(sql, shown, { rows: found, notes }) {
  const count = found.length > mostRows ? `the first ${figure(mostRows)} rows`
    : `${figure(found.length)} ${found.length === 1 ? 'row' : 'rows'}`
  const ledgerNote = knowledge().as_of === undefined ? []
    : [quiet('In these texts coverage, versions and other facts about the lake itself are those of now.')]
  parts.result.replaceChildren(html`<h2>Result: ${count}</h2>`, list(notes),
    shown.length === 0 ? quiet('No row.') : table(shown, 'Result'), plot(shown), copies(sql, 'rows'), ...ledgerNote)
}

const showVerdict = (words, ...content) => parts.verdict.replaceChildren(html`<h2>${words}</h2>`, ...content)

/** A quick picture: a column of numbers over the first column of instants, or over the number of the row. */
function plot(shown) {
  const names = Object.keys(shown[0] ?? {})
  const isColumnOf = (name, test) => shown.every((row) => row[name] === null || test(row[name]))
  const numberColumns = names.filter((name) => isColumnOf(name, (value) => typeof value === 'number'))
  if (shown.length < 2 || numberColumns.length === 0) return ''
  const name = [state.plot, 'v', numberColumns[0]].find((column) => numberColumns.includes(column))
  const isInstant = (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value))
  const time = names.find((column) => isColumnOf(column, isInstant))
  const points = shown.map((row, n) => [time === undefined ? n : Date.parse(row[time]), row[name]])
    .filter(([at, value]) => value !== null && !Number.isNaN(at))
  if (points.length === 0) return ''
  const extentOf = (place) => [Math.min, Math.max].map((end) => end(...points.map((point) => point[place])))
  const range = extentOf(0)
  const up = extentOf(1)
  const width = Math.max(280, parts.result.clientWidth - 2)
  const box = { left: 62, right: width - 12, top: 10, bottom: 210 }
  const x = scale(range, [box.left, box.right])
  const y = scale(up, [box.bottom, box.top])
  const dots = points.map(([at, value]) =>
    svg`<circle cx=${x(at).toFixed(2)} cy=${y(value).toFixed(2)} r="1.8" data-v=${value}></circle>`)
  const picture = svg`<svg class="quick" width=${width} height="240" role="img" aria-label="${name}">
    ${axes({ x, y, box, range, up, counted: time === undefined })}<g class="line c0">${dots}</g></svg>`
  const choice = select(numberColumns, name, (column) => change({ plot: column }), 'picture of')
  return html`<div class="pictured">${field('picture of', choice)}<div class="framed">${picture}</div></div>`
}

/** Tests whether the query looks ahead, and shows the verdict in sentences. */
async function judge(sql, ts, tsChoice) {
  const signal = AbortSignal.any([drawingRequests.signal, verdictRequests.next()])
  try {
    const proof = await (await request('lookahead', { sql, ts }, signal)).json()
    if (!signal.aborted) showProof(proof, ts, tsChoice)
  } catch (error) {
    if (!isSuperseded(error)) showVerdict('Look-ahead', tsChoice, quiet(error.message))
  }
}

function showProof(proof, ts, tsChoice) {
  const { verdict, proved, reason, cutoffs, rows: count, differing, differences, chain, unproved, assumes } = proof
  const conditions = assumes.map(({ what, rows: dependent }) => `${dependent} rows depend on ${what}`)
  const sentences = [reason, ...conditions, unproved?.why].filter(Boolean)
  sentences.push(...differences.slice(0, 3).map((difference) => differenceText(difference, ts)))
  showVerdict(`Look-ahead: ${verdict === 'clean' ? (proved ? 'proved' : 'tested') : verdict}`, tsChoice,
    html`<div class="verdict ${verdict}">${sentences.map((sentence) => html`<p>${sentence}</p>`)}
    ${proved ? list(chain.slice(0, 8)) : ''}
    ${quiet(`${figure(count)} rows tested at ${cutoffs} timestamps, ${figure(differing)} differ.`)}</div>`)
}

/** A sentence about a row that differs without the future. */
function differenceText({ as_of, row, column, full, truncated }, ts) {
  const others = Object.entries(row).filter(([name]) => name !== ts).map(([name, value]) => `${name} ${moment(value)}`)
  const place = `On ${moment(row[ts])}${others.length > 0 ? ` (${others.join(', ')})` : ''}`
  const known = `with only the data known at ${moment(as_of)}`
  const valueText = (value) => (typeof value === 'number' ? figure(value) : moment(value ?? 'null'))
  if (column !== null)
    return `${place} the query gives ${column} ${valueText(full)}; ${known} it gives ${valueText(truncated)}.`
  return full === null ? `${place} there is no row; ${known} there was one.`
    : `${place} there is a row; ${known} there was none.`
}

/** Shows the words that may complete the one before the caret. */
async function showCompletions() {
  const { completions } = parts
  const word = wordBeforeCaret()
  const names = word.length < 2 ? [] : (await rows(wordsSql, '')).map(({ name }) => name)
  if (word !== wordBeforeCaret()) return
  const found = names.filter((name) => name.toLowerCase().startsWith(word.toLowerCase()) && name !== word)
  completions.replaceChildren(...found.slice(0, mostCompletions).map((name, n) => html`<li role="option" tabindex="-1"
    aria-selected=${String(n === 0)} @click=${() => complete(name)}>${name}</li>`))
}

function wordBeforeCaret() {
  const { text } = parts
  return /[\w./]+$/.exec(text.value.slice(0, text.selectionStart))?.[0] ?? ''
}

function complete(name) {
  const { text, completions } = parts
  text.setRangeText(name, text.selectionStart - wordBeforeCaret().length, text.selectionStart, 'end')
  completions.replaceChildren()
  text.focus()
}

function handleKey(event) {
  const options = [...parts.completions.children]
  const selected = options.findIndex((option) => option.ariaSelected === 'true')
  const direction = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
  else if (options.length === 0 || event.ctrlKey || event.altKey || event.shiftKey) return
  else if (event.key === 'Tab') complete(options[selected].textContent)
  else if (event.key === 'Escape') parts.completions.replaceChildren()
  else if (direction === undefined) return
  else {
    const next = (selected + direction + options.length) % options.length
    options.forEach((option, n) => (option.ariaSelected = String(n === next)))
  }
  event.preventDefault()
}
