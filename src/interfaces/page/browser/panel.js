/** A panel from a form: its rows, and the same question in SQL, in Python, on a command line and over HTTP. */

import { latestInstant, notesOf, request } from './requests.js'
import { storedMetrics } from './chart.js'
import { listParts, panelTexts } from './command-texts.js'
import { knowledge, settingsSql, textBlock } from './copies.js'
import { field, figure, form, html, input, list, quiet, section, select, table } from './dom.js'
import { exchanges, isoOf } from './questions.js'
import { change, state } from './state.js'

export const title = 'Panel'

/** Fields of the form: the text in an empty one, and the help that the command and the server also show. */
const panelFields = {
  metrics: { hint: 'paths, or column=path', help: 'paths, or column=path; path#/pointer takes one leaf of an object' },
  calendar: { hint: 'since,until,step', help: 'a grid of decisions: 2024-01-01,2025-01-01,1d (or 15m, 1w, 1month; '
    + 'XNYS: closes of its sessions, XNYS:open; or a local time: daily at 09:30 America/New_York); needs assets or a universe' },
  assets: { hint: 'BTC,ETH', help: 'assets of the grid' },
  universe: { hint: "instead: status = 'active'", help: 'instead of assets the products known at each ts: '
    + "asset_class = 'stablecoins' AND status = 'active'" },
  with: { hint: 'status,issuer_status,chains', help: 'columns of the registry as known at each ts: status, '
    + 'issuer_status, asset_class, chains, … of view universe' },
  fields: { hint: 'v', help: 'fields of each point: v, o, t, available_at, age (default: v)' },
  interval: { hint: '24h', help: 'interval of the metrics; 24h where none is named' },
  currency: { hint: 'the catalogue’s', help: 'native or usd (default: the catalogue’s)' },
  latency: { hint: '15m', help: 'time needed to act: 15m' },
  max_age: { hint: '3d', help: 'older points give NULL: 3d' },
  back: { hint: '90d, 3month', help: 'instead of the newest known point the one that ended this long before it: '
    + '90d, 3month' },
  skip_nulls: { hint: 'true', help: 'points whose value is null do not count' },
}

const day = 86_400_000
/** Maximum number of rows that are shown. */
const mostRows = 500
/** Bytes of the largest answer that is read: a longer one would stop the page for seconds. */
const mostBytes = 32_000_000

/** Options of the panel: those of the state, with defaults: a month of the first metric and three of its assets. */
async function panelOptions() {
  const metrics = await storedMetrics()
  const first = metrics.find(({ metric }) => metric === state.metric) ?? metrics[0] ?? { metric: '', asset: [] }
  const dayBefore = (days) => isoOf(Math.floor(latestInstant() / day - days) * day).slice(0, 10)
  const defaults = { metrics: first.metric, calendar: `${dayBefore(31)},${dayBefore(1)},1d`,
    assets: first.asset.slice(0, 3).join(',') }
  const values = Object.keys(panelFields).map((name) => [name, state[name] || (defaults[name] ?? '')])
  return Object.fromEntries(values.filter(([name, value]) =>
    value !== '' && !(name === 'assets' && state.universe !== '')))
}

export async function draw(main) {
  const options = await panelOptions()
  const asOf = knowledge()
  const body = { ...options, metrics: listParts(options.metrics), ...asOf }
  const [metrics, calendar, ...others] = Object.entries(panelFields).map(([name, { hint, help }]) => {
    const size = { metrics: 34, calendar: 26 }[name] ?? 20
    const text = input(name, options[name] ?? '', (value) => change({ [name]: value }), { hint, help, size })
    return field(name.replaceAll('_', ' '), text, name === 'metrics' ? 'wide' : '')
  })
  const result = section('Rows', quiet('Running the query …'))
  const copies = html`<section></section>`
  main.replaceChildren(form(metrics, calendar, field('decisions', stepChoice(options.calendar)), others),
    html`<div class="sides">${result}${copies}</div>`)
  try {
    const sql = await (await request('panel', { ...body, explain: true })).text()
    const texts = { ...panelTexts(options, asOf, location.origin), SQL: settingsSql(asOf) + sql }
    copies.append(...Object.entries(texts).map(([name, text]) => textBlock(name, text, 'panel')))
    result.replaceChildren(...await rowsOf(body))
  } catch (error) {
    // Without this a refused panel would seem to be running still.
    result.replaceChildren(quiet('No answer.'))
    throw error
  }
}

/** The rows of a panel, with their number and its notes. */
async function rowsOf(body) {
  const answer = await request('panel?format=json', body)
  const count = Number(answer.headers.get('pitlake-rows'))
  const title = html`<h2>${figure(count)} ${count === 1 ? 'row' : 'rows'}</h2>`
  const notes = list(notesOf(answer))
  if (Number(answer.headers.get('content-length')) > mostBytes) {
    await answer.body.cancel()
    return [title, notes, quiet('Too many to show on this page. Each of the copied texts returns them.')]
  }
  const rows = await answer.json()
  if (rows.length === 0) return [title, notes, quiet('No row.')]
  const cut = rows.length > mostRows ? [quiet(`The first ${mostRows} of them; the copied texts return all.`)] : []
  return [title, notes, ...cut, table(rows.slice(0, mostRows), 'Panel')]
}

/** Choice of when decisions fall: steps of a length, or the closes or openings of the sessions of an exchange. */
function stepChoice(calendar) {
  const [since, until, step = '1d'] = listParts(calendar)
  const labels = { '1h': 'each hour', '1d': 'each day', '1w': 'each week', '1month': 'each month' }
  for (const [code, name] of Object.entries(exchanges))
    Object.assign(labels, { [code]: `closes of ${name}`, [`${code}:open`]: `openings of ${name}` })
  labels[step] ??= step
  const setStep = (chosen) => change({ calendar: [since, until, chosen].join(',') })
  return select(Object.keys(labels), step, setStep, 'decisions', labels)
}
