/** What is held of what was asked for, month by month, and whether the lake can be trusted. */

import { post, rows, wall } from './ask.js'
import { cellOf, html, list, moment, plainCell, quiet, section, svg, table } from './dom.js'

export const title = 'Coverage'

/** Each endpoint's months: how many seconds of its windows were asked for, are held, and failed. */
const months = `SELECT metric, epoch_ms(month) AS at, sum(s) AS asked,
  coalesce(sum(s) FILTER (state = 'failed'), 0) AS failed,
  coalesce(sum(s) FILTER (state = 'empty' OR (state = 'covered' AND reason IS NULL)), 0) AS held
FROM (SELECT *, epoch(least("until", month + INTERVAL 1 MONTH)) - epoch(greatest(since, month)) AS s
  FROM (SELECT *, unnest(generate_series(date_trunc('month', since), "until" - INTERVAL 1 MICROSECOND,
      INTERVAL 1 MONTH)) AS month FROM coverage WHERE state <> 'unsupported' AND since < "until"))
GROUP BY metric, month ORDER BY metric, month`

const counts = `SELECT metric, '' AS months, count(DISTINCT (asset, "interval", currency, exchange, network)) AS series,
  count(*) FILTER (state = 'covered') AS covered, count(*) FILTER (state = 'failed') AS failed,
  count(*) FILTER (reason = 'awaiting') AS awaited, coalesce(any_value(g.missing), 0) AS missing,
  coalesce(any_value(v.open), 0) AS violations, max("until") FILTER (state = 'covered') AS until
FROM coverage LEFT JOIN (SELECT metric, sum(missing) AS missing FROM gaps GROUP BY metric) AS g USING (metric)
LEFT JOIN (SELECT metric, count(*) AS open FROM violations WHERE status = 'open' GROUP BY metric) AS v USING (metric)
GROUP BY metric ORDER BY metric`

export async function draw(main) {
  const [cells, all] = await Promise.all([rows(months), rows(counts)])
  const ends = cells.reduce(([a, b], { at }) => [Math.min(a, at), Math.max(b, at)], [Infinity, -Infinity])
  const cell = (value, name, { metric }) =>
    name === 'months' ? cellOf('td', heat(cells.filter((one) => one.metric === metric), ends)) : plainCell(value)
  const range = cells.length === 0 ? '' : `, ${ends.map((at) => new Date(at).toISOString().slice(0, 7)).join(' to ')}`
  main.replaceChildren(await trust(), section(`Coverage${range}`,
    all.length === 0 ? quiet('Nothing had been asked for by then.') : table(all, 'Coverage', { cell })))
}

/** A row of months, filled as far as they are held; red where they failed. */
function heat(own, [from, to]) {
  const month = (ms) => new Date(ms).getUTCFullYear() * 12 + new Date(ms).getUTCMonth()
  const bar = (kind, x, share) => svg`<rect class=${kind} x=${x} y=${16 - 16 * share}
    width="0.9" height=${16 * share}></rect>`
  const bars = own.map(({ at, asked, held, failed }) => {
    const x = month(at) - month(from)
    return svg`<g data-held=${held} data-asked=${asked} data-at=${at}>
      ${[bar('base', x, 1), bar('held', x, held / asked), failed > 0 ? bar('failed', x, failed / asked) : '']}</g>`
  })
  return svg`<svg class="heat" width="260" height="16" viewBox="0 0 ${month(to) - month(from) + 1} 16"
    preserveAspectRatio="none" aria-hidden="true">${bars}</svg>`
}

/** The judgement of the lake as it stands now; what is not well is told with a status of its own. */
async function trust() {
  if (wall !== null) return quiet('How the lake stands today is not told behind a wall.')
  const judged = await post('healthz').then((answer) => answer.json(), (error) => JSON.parse(error.message))
  const reasons = (judged.reasons ?? []).map(({ text, next }) => (next === null ? text : `${text}: ${next}`))
  return section(`Trust: ${judged.trust}`, html`<div class="verdict ${judged.ok ? 'clean' : 'undecided'}">
    <p>${judged.text}</p>${list(reasons)}</div>`, quiet(`version ${judged.version} of ${moment(judged.committed_at)}`))
}
