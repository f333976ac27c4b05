/** A panel from a form: its rows, and how SQL, Python, a command line and HTTP ask for the same. */

import { latest, noted, post, utc } from './ask.js'
import { heldMetrics } from './chart.js'
import { button, field, figure, form, html, input, list, quiet, section, table } from './dom.js'
import { isoOf } from './questions.js'
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
  const asOf = state.as_of === '' ? {} : { as_of: utc(state.as_of) }
  const body = { ...panel, metrics: panel.metrics.split(','), ...asOf }
  const fields = Object.entries(options).map(([name, hint]) => {
    const size = name === 'calendar' ? 26 : 20
    const text = input(name, panel[name] ?? '', (value) => change({ [name]: value }), { hint, size })
    return field(name.replace('_', ' '), text, name === 'metrics' ? 'wide' : '')
  })
  const [result, ways] = [section('Rows', quiet('Running the query …')), html`<section></section>`]
  main.replaceChildren(form(fields), html`<div class="sides">${result}${ways}</div>`)
  const sql = await (await post('panel', { ...body, explain: true })).text()
  const known = asOf.as_of ? `SET VARIABLE as_of = '${asOf.as_of}';\n` : ''
  const texts = { ...spelt(panel, asOf), SQL: known + sql }
  ways.append(...Object.entries(texts).map(([name, text]) => {
    const copy = button('copy', () => navigator.clipboard?.writeText(text), `copy ${name}`)
    return html`<div><h2>${name} ${copy}</h2><pre data-way=${name} tabindex="0">${text}</pre></div>`
  }))
  const { rows, notes } = await noted('panel', body)
  const shown = rows.length === 0 ? quiet('No row.') : table(rows.slice(0, 500), 'Panel')
  result.replaceChildren(html`<h2>${figure(rows.length)} rows</h2>`, list(notes), shown)
}

/** The same question as other doors take it. */
function spelt(panel, asOf) {
  const shell = (text) => (/^[\w.,:/=#+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
  const python = (value) => {
    if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`
    if (typeof value !== 'object') return JSON.stringify(value)
    return `{${Object.entries(value).map(([name, one]) => `${python(name)}: ${python(one)}`).join(', ')}}`
  }
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
  const lake = `pitlake.open("data"${asOf.as_of ? `, as_of=${python(asOf.as_of)}` : ''})`
  return {
    Python: `import pitlake\n\nlake = ${lake}\ndays = lake.calendar(${grid})
frame = lake.panel(days, ${python(columns)}, ${python(interval)}${more.join('')}).df()`,
    'Command line': `pitlake panel ${flags.join(' ')}`,
    HTTP: `curl ${shell(`${location.origin}/panel?${new URLSearchParams({ ...panel, ...asOf })}`)}`,
  }
}
