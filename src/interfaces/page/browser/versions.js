/** What one commit of the lake changed against another, and what brought it. */

import { base64, beside, post, rows, trouble, wall } from './ask.js'
import { ways } from './copies.js'
import { field, figure, form, html, moment, quiet, section, select, table } from './dom.js'
import { quote } from './questions.js'
import { change, state } from './state.js'

export const title = 'Versions'

let ends = null
/** From the first commit to the last. */
export const domain = () => ends
export const neighbour = (at, forward) => beside('committed_at', 'versions', at, forward)

/** What came after one commit until another: what it is about, by which instant, its columns, and where they stand. */
const changes = [
  ['Series with new points', 'observed_at', `metric, asset, "interval", currency, count(*) AS points, min(t) AS first_t,
  max(t) AS last_t, observed_at AS committed_at`, 'points', 'GROUP BY ALL ORDER BY points DESC, metric, asset'],
  ['Values that differ upstream', 'offered_at', 'metric, asset, t, kind, stored, offered, offered_at, v.status, request, run',
    'violations AS v LEFT JOIN requests ON id = request', 'ORDER BY offered_at, metric, t'],
  ['Products that changed', 'valid_from', 'id, valid_from, op, status, name', 'history.products',
    'ORDER BY valid_from, id'],
  ['Commits and their runs', 'committed_at', `version, committed_at, v.job, points_added, files_added,
  files_removed, run, command, exit_code, program`, 'versions AS v LEFT JOIN runs AS r ON r.id = run',
    'ORDER BY version'],
  ['Requests of these runs', 'committed_at', 'DISTINCT asked_at, path, query, status, outcome, points, q.run, q.id',
    'requests AS q JOIN versions AS v ON v.run = q.run', 'ORDER BY asked_at'],
]

export async function draw(main) {
  const all = await rows(`SELECT version, committed_at, epoch_ms(committed_at) AS at FROM versions
ORDER BY version DESC LIMIT 1000`)
  if (all.length === 0) return main.replaceChildren(quiet('No version was committed by then.'))
  ends = [all.at(-1).at, all[0].at + 1]
  const numbers = all.map(({ version }) => String(version))
  const to = numbers.includes(state.to) ? state.to : numbers[0]
  const from = [...numbers, '0'].includes(state.from) ? state.from : (numbers[1] ?? '0')
  const at = (version) => all[numbers.indexOf(version)]?.committed_at ?? '0001-01-01'
  const told = await Promise.all(changes.map(async ([name, instant, columns, where, order]) => {
    const query = `SELECT ${columns}\nFROM ${where}\nWHERE ${instant} > ${quote(at(from))}::TIMESTAMPTZ
  AND ${instant} <= ${quote(at(to))}::TIMESTAMPTZ\n${order}`
    const found = await rows(`${query} LIMIT 500`)
    const count = found.length === 500 ? 'the first 500' : figure(found.length)
    return section(`${name}: ${count}`, found.length === 0 ? '' : table(found, name),
      ways(query, name.toLowerCase(), { ofLedger: true }))
  }))
  const pick = (name, chosen, words) => field(name, select(words, chosen, (value) => change({ [name]: value }), name))
  main.replaceChildren(form(pick('from', from, [...numbers, '0']), pick('to', to, numbers),
    quiet(`${from === '0' ? 'the beginning' : moment(at(from))} … ${moment(at(to))}`)), ...told, explaining())
}

/** Asks why the query of a stamped result gives other rows now; the file is read here and kept nowhere. */
function explaining() {
  if (wall !== null) return ''
  const story = html`<div id="story" aria-live="polite"></div>`
  const choose = async ({ target: { files: [file] } }) => {
    story.replaceChildren(quiet('Looking for the commit …'))
    const result = await base64(file)
    const told = async (answer) => story.replaceChildren(...storyOf(await answer.json()))
    await post('explain', { result }).then(told).catch(trouble)
  }
  return section('Why does a stamped result differ now?', field('a Parquet file that pitlake stamp wrote',
    html`<input id="stamped" type="file" accept=".parquet" @change=${choose}>`), story)
}

/** What explain-change found, as it would be told. */
function storyOf({ verdict, reason, from, to, commit, row, points, records, text }) {
  const why = reason === null ? '' : `, ${reason}`
  const words = [`Between version ${from.version} and ${to.version}: ${verdict}${why}.`]
  if (commit !== null) {
    const at = moment(new Date(commit.committed_at / 1000).toISOString())
    const points = `${figure(commit.points_added)} points`
    words.push(`Commit ${commit.version} of ${at} changed it: ${commit.job}, run ${commit.run}, ${points}.`)
  }
  if (row !== null) words.push(`The first row that it changed: ${JSON.stringify(row)}`)
  if (text !== null) words.push(`Views or macros of another text: ${JSON.stringify(text)}`)
  const behind = [[points, 'Points behind it'], [records, 'Records behind it']].filter(([own]) => own.length > 0)
  return [...words.map((one) => html`<p>${one}</p>`), ...behind.map(([own, name]) => section(name, table(own, name)))]
}
