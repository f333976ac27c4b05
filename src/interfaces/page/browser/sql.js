/** A query of one's own: its rows as known at the instant, what is to be noted, and whether it looks ahead. */

import { download, isSuperseded, noted, post, question, rows, trouble } from './ask.js'
import { knowledge, ways } from './copies.js'
import { button, field, figure, form, html, list, moment, quiet, select, svg, table } from './dom.js'
import { axes, scale } from './picture.js'
import { change, state } from './state.js'

export const title = 'SQL'
/** Nothing of it is drawn anew while somebody types. */
export const whole = []

const most = 1000
const example = `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-01-01', '2024-03-01', '1 day'))
SELECT ts, v, age FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h') ORDER BY ts`
const formats = { CSV: ['csv', 'csv'], Parquet: ['parquet', 'parquet'], Arrow: ['arrow', 'arrows'] }

let held = null

/** What may stand in a query: views, columns, macros, metrics and the engine's own words. */
const words = `SELECT DISTINCT name FROM (
  SELECT column_name AS name FROM duckdb_columns() WHERE NOT internal
  UNION ALL SELECT if(schema_name = 'main', '', schema_name || '.') || view_name FROM duckdb_views() WHERE NOT internal
  UNION ALL SELECT function_name FROM duckdb_functions() WHERE NOT internal
  UNION ALL SELECT metric FROM endpoints
  UNION ALL SELECT unnest(string_split('SELECT FROM WHERE GROUP ORDER LIMIT WITH JOIN LEFT CASE WHEN THEN ELSE END OVER
PARTITION DISTINCT BETWEEN INTERVAL UNION HAVING QUALIFY FILTER UNNEST', ' '))) ORDER BY name`

export async function draw(main) {
  const text = html`<textarea aria-label="SQL" spellcheck="false" aria-autocomplete="list" aria-controls="words"
    value=${state.sql || example} @input=${() => offer().catch(trouble)} @keydown=${keys}></textarea>`
  const offered = html`<ul class="words" id="words" role="listbox" aria-label="Completions"></ul>`
  const [result, verdict] = [html`<section aria-live="polite"></section>`, html`<section aria-live="polite"></section>`]
  const files = Object.entries(formats).map(([name, [format, ending]]) => button(name, () =>
    download('query', question(queryOf(), state.as_of), format, ending).catch(trouble), `the whole result as ${name}`))
  held = { text, offered, result, verdict }
  const hint = quiet('one SELECT over the views; Ctrl+Enter runs it, Tab takes a completion')
  main.replaceChildren(text, offered, form(button('Run', submit, 'Ctrl+Enter'), files, hint),
    html`<div class="sides">${result}${verdict}</div>`)
  if (state.sql !== '') await ask()
}

/** Asks again where the instant moves. */
export async function step() {
  if (document.activeElement !== held.text) held.text.value = state.sql || example
  if (state.sql !== '') await ask()
}

function submit() {
  if (state.sql === held.text.value) ask().catch(trouble)
  else change({ sql: held.text.value })
}

const queryOf = () => (state.sql || held.text.value).replace(/[;\s]+$/, '')

async function ask() {
  const sql = queryOf()
  held.verdict.replaceChildren()
  const mine = (held.asked = {})
  const told = await noted('query', question(`SELECT * FROM (${sql}\n) LIMIT ${most + 1}`, state.as_of))
  if (held.asked !== mine) return
  const shown = told.rows.slice(0, most)
  const behind = knowledge().as_of === undefined ? []
    : [quiet('In these texts coverage, versions and other facts about the lake itself are those of now.')]
  const count = told.rows.length > most ? `the first ${figure(most)} rows` : `${figure(shown.length)} rows`
  held.result.replaceChildren(html`<h2>Result: ${count}</h2>`, list(told.notes),
    shown.length === 0 ? quiet('No row.') : table(shown, 'Result'), plot(shown), ways(sql, 'rows'), ...behind)
  const instants = Object.keys(shown[0] ?? {}).filter((name) => /^\d{4}-\d\d-\d\d(T|$)/.test(String(shown[0][name])))
  const ts = [state.ts, 'ts', instants[0]].find((name) => instants.includes(name))
  if (ts === undefined) return tell('Look-ahead', quiet('No column has the decision time of each row, so there is nothing to test.'))
  tell('Look-ahead', quiet('Testing it without the future …'))
  const words = 'instant of each row'
  void judge(sql, ts, field(words, select(instants, ts, (value) => change({ ts: value }), words)))
}

const tell = (words, ...parts) => held.verdict.replaceChildren(html`<h2>${words}</h2>`, ...parts)

/** A quick picture: a column of numbers over the first one of instants, or over the rows. */
function plot(shown) {
  const names = Object.keys(shown[0] ?? {})
  const all = (name, holds) => shown.every((row) => row[name] === null || holds(row[name]))
  const numbers = names.filter((name) => all(name, (value) => typeof value === 'number'))
  if (shown.length < 2 || numbers.length === 0) return ''
  const name = [state.plot, 'v', numbers[0]].find((one) => numbers.includes(one))
  const time = names.find((one) => all(one, (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value))))
  const across = (row, n) => (time === undefined ? n : Date.parse(row[time]))
  const points = shown.map((row, n) => [across(row, n), row[name]]).filter(([, value]) => value !== null)
  const ends = (n) => [Math.min, Math.max].map((most) => most(...points.map((one) => one[n])))
  const [range, up] = [ends(0), ends(1)]
  const width = Math.max(280, held.result.clientWidth - 2)
  const box = { left: 62, right: width - 12, top: 10, bottom: 210 }
  const [x, y] = [scale(range, [box.left, box.right]), scale(up, [box.bottom, box.top])]
  const dots = points.map(([a, b]) =>
    svg`<circle cx=${x(a).toFixed(2)} cy=${y(b).toFixed(2)} r="1.8" data-v=${b}></circle>`)
  const picture = svg`<svg class="quick" width=${width} height="240" role="img" aria-label="${name}">
    ${axes({ x, y, box, range, up, counted: time === undefined })}<g class="line c0">${dots}</g></svg>`
  const pick = select(numbers, name, (value) => change({ plot: value }), 'picture of')
  return html`<div class="pictured">${field('picture of', pick)}<div class="framed">${picture}</div></div>`
}

/** What lookahead says of it, in sentences. */
async function judge(sql, ts, pick) {
  const mine = (held.judged = {})
  const said = await post('lookahead', { sql, ts }).then((answer) => answer.json()).catch((error) => error)
  if (held.judged !== mine || isSuperseded(said)) return
  if (said.message !== undefined) return tell('Look-ahead', pick, quiet(said.message))
  const { verdict, proved, reason, cutoffs, rows: count, differing, differences, chain, unproved, assumes } = said
  const beside = [reason, ...assumes.map(({ what, rows: own }) => `${own} rows depend on ${what}`), unproved?.why]
  const told = [...beside.filter(Boolean), ...differences.slice(0, 3).map((one) => sentence(one, ts))]
  tell(`Look-ahead: ${verdict === 'clean' ? (proved ? 'proved' : 'tested') : verdict}`, pick,
    html`<div class="verdict ${verdict}">${told.map((one) => html`<p>${one}</p>`)}
    ${proved ? list(chain.slice(0, 8)) : ''}
    ${quiet(`${figure(count)} rows tested at ${cutoffs} timestamps, ${figure(differing)} differ.`)}</div>`)
}

/** One row that differs, as somebody would tell it. */
function sentence({ as_of, row, column, full, truncated }, ts) {
  const own = Object.entries(row).filter(([name]) => name !== ts).map(([name, value]) => `${name} ${moment(value)}`)
  const at = `On ${moment(row[ts])}${own.length > 0 ? ` (${own.join(', ')})` : ''}`
  const known = `with only the data known at ${moment(as_of)}`
  const told = (value) => (typeof value === 'number' ? figure(value) : moment(value ?? 'null'))
  const [is, was] = full === null ? ['no', 'one'] : ['a', 'none']
  if (column === null) return `${at} there is ${is} row; ${known} there is ${was}.`
  return `${at} the query gives ${column} ${told(full)}; ${known} it gives ${told(truncated)}.`
}

/** The word before the caret, and what may be meant by it. */
async function offer() {
  const [word = ''] = /[\w./]+$/.exec(held.text.value.slice(0, held.text.selectionStart)) ?? []
  held.word = word
  const names = word.length < 2 ? [] : (await rows(words, '')).map(({ name }) => name)
  if (held.word !== word) return
  const found = names.filter((name) => name.toLowerCase().startsWith(word.toLowerCase()) && name !== word)
  held.offered.replaceChildren(...found.slice(0, 12).map((name, n) => html`<li role="option" tabindex="-1"
    aria-selected=${String(n === 0)} @click=${() => take(name)}>${name}</li>`))
}

function take(name) {
  const { text, word } = held
  text.setRangeText(name, text.selectionStart - word.length, text.selectionStart, 'end')
  held.offered.replaceChildren()
  text.focus()
}

function keys(event) {
  const offers = [...held.offered.children]
  const at = offers.findIndex((one) => one.ariaSelected === 'true')
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit()
  else if (offers.length === 0 || event.ctrlKey || event.altKey || event.shiftKey) return
  else if (event.key === 'Tab') take(offers[at].textContent)
  else if (event.key === 'Escape') held.offered.replaceChildren()
  else if (way === undefined) return
  else offers.forEach((one, n) => (one.ariaSelected = String(n === (at + way + offers.length) % offers.length)))
  event.preventDefault()
}
