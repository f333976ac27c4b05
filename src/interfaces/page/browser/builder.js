/** A panel from a form: its rows, and how SQL, Python, a command line and HTTP ask for the same. */

import { latest, noted, post } from './ask.js'
import { heldMetrics } from './chart.js'
import { knowledge, known, opened, python, shell, way } from './copies.js'
import { field, figure, form, html, input, list, quiet, section, select, table } from './dom.js'
import { exchanges, isoOf } from './questions.js'
import { change, state } from './state.js'

export const title = 'Panel'

/** What may be said, and what stands in its place until then. */
const options = { metrics: 'paths, or column=path', calendar: 'since,until,step', assets: 'BTC,ETH',
  universe: "instead: status = 'active'", fields: 'v', interval: '24h', currency: 'the catalogue’s', latency: '15m',
  max_age: '3d', skip_nulls: 'true' }

/** What is asked: the state, and where it says nothing a month of the first metric. */
async function asked() {
  const all = await heldMetrics()
  const first = all.find(({ metric }) => metric === state.metric) ?? all[0] ?? { metric: '', asset: [] }
  const ago = (days) => isoOf(Math.floor(latest() / 864e5 - days) * 864e5).slice(0, 10)
  const assets = state.universe === '' ? first.asset.slice(0, 3).join(',') : ''
  const usual = { metrics: first.metric, calendar: `${ago(31)},${ago(1)},1d`, assets }
  const told = Object.keys(options).map((name) => [name, state[name] || (usual[name] ?? '')])
  return Object.fromEntries(told.filter(([name, value]) => value !== '' && !(name === 'assets' && assets === '')))
}

export async function draw(main) {
  const panel = await asked()
  const asOf = knowledge()
  const body = { ...panel, metrics: panel.metrics.split(','), ...asOf }
  const fields = Object.entries(options).map(([name, hint]) => {
    const size = { metrics: 34, calendar: 26 }[name] ?? 20
    const text = input(name, panel[name] ?? '', (value) => change({ [name]: value }), { hint, size })
    return field(name.replace('_', ' '), text, name === 'metrics' ? 'wide' : '')
  })
  const result = section('Rows', quiet('Running the query …'))
  const ways = html`<section></section>`
  const [metrics, calendar, ...others] = fields
  const chosen = form(metrics, calendar, field('decisions', decisions(panel.calendar)), others)
  main.replaceChildren(chosen, html`<div class="sides">${result}${ways}</div>`)
  const sql = await (await post('panel', { ...body, explain: true })).text()
  const texts = { ...spelt(panel, asOf), SQL: known(asOf) + sql }
  ways.append(...Object.entries(texts).map(([name, text]) => way(name, text, 'panel')))
  const { rows, notes } = await noted('panel', body)
  const shown = rows.length === 0 ? quiet('No row.') : table(rows.slice(0, 500), 'Panel')
  result.replaceChildren(html`<h2>${figure(rows.length)} rows</h2>`, list(notes), shown)
}

/** When decisions fall: steps of a length, or the closes or openings of the sessions of an exchange. */
function decisions(calendar) {
  const [since, until, step = '1d'] = calendar.split(',')
  const stepNames = { '1h': 'each hour', '1d': 'each day', '1w': 'each week', '1month': 'each month' }
  for (const [code, name] of Object.entries(exchanges))
    Object.assign(stepNames, { [code]: `closes of ${name}`, [`${code}:open`]: `openings of ${name}` })
  stepNames[step] ??= step
  const take = (word) => change({ calendar: [since, until, word].join(',') })
  return select(Object.keys(stepNames), step, take, 'decisions', stepNames)
}

/** The same question as other doors take it. */
function spelt(panel, asOf) {
  const { metrics, calendar, assets, universe, interval = '24h', fields, ...rest } = panel
  const flags = Object.entries({ ...panel, ...asOf }).map(([name, value]) =>
    name === 'skip_nulls' ? '--skip-nulls' : `--${name.replace('_', '-')} ${shell(value)}`)
  const named = metrics.split(',').map((one) => one.split('='))
  const columns = named.every((one) => one.length === 1) ? metrics.split(',') : Object.fromEntries(named.map((one) =>
    [one[0], one.at(-1)]))
  const keywords = { ...(fields && { fields: fields.split(',') }), ...(universe && { universe }), ...rest }
  const more = Object.entries(keywords).map(([name, value]) =>
    `, ${name}=${name === 'skip_nulls' ? 'True' : python(value)}`)
  const grid = [...calendar.split(',').map(python), ...(universe ? [] : [python(assets.split(','))])].join(', ')
  return {
    Python: `${opened(asOf)}\ndays = lake.calendar(${grid})
frame = lake.panel(days, ${python(columns)}, ${python(interval)}${more.join('')}).df()`,
    'Command line': `pitlake panel ${flags.join(' ')}`,
    HTTP: `curl ${shell(`${location.origin}/panel?${new URLSearchParams({ ...panel, ...asOf })}`)}`,
  }
}
