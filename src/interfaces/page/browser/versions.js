/** What commits of the lake changed, and the runs that made them. */

import { neighbourOf, rows, wall } from './requests.js'
import { copies } from './copies.js'
import { field, figure, form, html, moment, quiet, section, select, table } from './dom.js'
import { quote } from './questions.js'
import { change, state } from './state.js'
import { AnswerPlace, ChosenFile, fileRoom } from './uploads.js'

export const title = 'Versions'

/** Times of the first commit and the last one; null before they are read. */
let commitRange = null
export const domain = () => commitRange
export const neighbour = (at, forward) => neighbourOf('committed_at', 'versions', at, forward)

/** Maximum number of versions to choose from, and of rows that each table shows. */
const mostVersions = 1000
const mostRows = 500

/** Tables of what changed after one commit until a different one. `instant` is the column with the time of a change. */
const changeTables = [
  { title: 'Series with new points', instant: 'observed_at',
    columns: `metric, asset, "interval", currency, count(*) AS points, min(t) AS first_t,
  max(t) AS last_t, observed_at AS committed_at`,
    relation: 'points', order: 'GROUP BY ALL ORDER BY points DESC, metric, asset' },
  { title: 'Values that differ upstream', instant: 'offered_at',
    columns: 'metric, asset, t, kind, stored, offered, offered_at, v.status, request, run',
    relation: 'violations AS v LEFT JOIN requests ON id = request', order: 'ORDER BY offered_at, metric, t' },
  { title: 'Products that changed', instant: 'valid_from', columns: 'id, valid_from, op, status, name',
    relation: 'history.products', order: 'ORDER BY valid_from, id' },
  { title: 'Commits and their runs', instant: 'committed_at',
    columns: `version, committed_at, v.job, points_added, files_added,
  files_removed, run, command, exit_code, program`,
    relation: 'versions AS v LEFT JOIN runs AS r ON r.id = run', order: 'ORDER BY version' },
  { title: 'Requests of these runs', instant: 'committed_at',
    columns: 'DISTINCT asked_at, path, query, status, outcome, points, q.run, q.id',
    relation: 'requests AS q JOIN versions AS v ON v.run = q.run', order: 'ORDER BY asked_at' },
]

export async function draw(main) {
  const versions = await rows(`SELECT version, committed_at, epoch_ms(committed_at) AS at FROM versions
ORDER BY version DESC LIMIT ${mostVersions}`)
  if (versions.length === 0) return main.replaceChildren(quiet('No version was committed by then.'))
  commitRange = [versions.at(-1).at, versions[0].at + 1]
  const numbers = versions.map(({ version }) => String(version))
  const to = numbers.includes(state.to) ? state.to : numbers[0]
  const from = [...numbers, '0'].includes(state.from) ? state.from : (numbers[1] ?? '0')
  const timeOf = (version) => versions[numbers.indexOf(version)]?.committed_at ?? '0001-01-01'
  const sections = await Promise.all(changeTables.map(async (facts) => changeSection(facts, timeOf(from), timeOf(to))))
  const choice = (name, chosen, words) =>
    field(name, select(words, chosen, (value) => change({ [name]: value }), name))
  const range = `${from === '0' ? 'the beginning' : moment(timeOf(from))} … ${moment(timeOf(to))}`
  main.replaceChildren(form(choice('from', from, [...numbers, '0']), choice('to', to, numbers), quiet(range)),
    ...sections, explanation())
}

async function changeSection({ title: words, instant, columns, relation, order }, after, until) {
  const query = `SELECT ${columns}\nFROM ${relation}\nWHERE ${instant} > ${quote(after)}::TIMESTAMPTZ
  AND ${instant} <= ${quote(until)}::TIMESTAMPTZ\n${order}`
  const found = await rows(`${query} LIMIT ${mostRows}`)
  const count = found.length === mostRows ? `the first ${mostRows}` : figure(found.length)
  return section(`${words}: ${count}`, found.length === 0 ? '' : table(found, words),
    copies(query, words.toLowerCase(), { ofLedger: true }))
}

const explanationPlace = new AnswerPlace('story')

/** Part that asks why the query of a stamped result returns other rows now; the server does not store the file. */
function explanation() {
  if (wall !== null) return ''
  const limit = `at most ${figure(Math.floor(fileRoom('result') / 1000))} kB`
  const choose = async ({ target }) => {
    const [file] = target.files
    if (file === undefined) return
    const result = new ChosenFile(file)
    await explanationPlace.answer(result.name, `Looking for the commit that changed ${result.name} …`, async (signal) =>
      partsOf(await result.send('explain', 'result', { command: 'pitlake explain-change', signal }), result.name))
  }
  return section('Why does a stamped result differ now?', field(`a Parquet file that pitlake stamp wrote, ${limit}`,
    html`<input id="stamped" type="file" accept=".parquet,.parq,.pq" @change=${choose}>`), explanationPlace.section())
}

/** The parts that show what explain-change found about a file. */
function partsOf({ verdict, reason, from, to, commit, row, points, records, text }, name) {
  const because = reason === null ? '' : `, ${reason}`
  const sentences = [`Between version ${from.version} and ${to.version}: ${verdict}${because}.`]
  if (commit !== null) {
    const at = moment(new Date(commit.committed_at / 1000).toISOString())
    const added = `${figure(commit.points_added)} points`
    sentences.push(`Commit ${commit.version} of ${at} changed it: ${commit.job}, run ${commit.run}, ${added}.`)
  }
  if (row !== null) sentences.push(`The first row that it changed: ${JSON.stringify(row)}`)
  if (text !== null) sentences.push(`Views or macros with a different text: ${JSON.stringify(text)}`)
  const causes = [[points, 'Points behind it'], [records, 'Records behind it']].filter(([found]) => found.length > 0)
  return [html`<h3>${name}</h3>`, ...sentences.map((sentence) => html`<p>${sentence}</p>`),
    ...causes.map(([found, words]) => section(words, table(found, words)))]
}
