/** The coverage of the lake month by month, and whether it can be trusted. */

import { isSuperseded, recording, request, rows, wall } from './requests.js'
import { copies } from './copies.js'
import { cellOf, html, list, moment, plainCell, quiet, section, svg, table } from './dom.js'
import { countsSql, monthsSql } from './questions.js'

export const title = 'Coverage'

export async function draw(main) {
  const [months, counts] = await Promise.all([rows(monthsSql), rows(countsSql)])
  const range = months.reduce(([first, last], { at }) => [Math.min(first, at), Math.max(last, at)], [Infinity, -Infinity])
  const cell = (value, name, { metric }) => name !== 'months' ? plainCell(value)
    : cellOf('td', monthBars(months.filter((month) => month.metric === metric), range))
  const [first, ...others] = Object.keys(counts[0] ?? {})
  const columns = [first, 'months', ...others]
  const rangeText = months.length === 0 ? ''
    : `, ${range.map((at) => new Date(at).toISOString().slice(0, 7)).join(' to ')}`
  main.replaceChildren(await trust(), section(`Coverage${rangeText}`,
    counts.length === 0 ? quiet('Nothing had been requested by then.') : table(counts, 'Coverage', { columns, cell }),
    copies(countsSql, 'counts', { ofLedger: true }), copies(monthsSql, 'months', { ofLedger: true })))
}

/** A bar for each month, filled as far as it is covered; red where requests failed. */
function monthBars(months, [from, to]) {
  const monthNumber = (ms) => new Date(ms).getUTCFullYear() * 12 + new Date(ms).getUTCMonth()
  const bar = (kind, x, share) => svg`<rect class=${kind} x=${x} y=${16 - 16 * share}
    width="0.9" height=${16 * share}></rect>`
  const bars = months.map(({ at, requested, covered, failed }) => {
    const x = monthNumber(at) - monthNumber(from)
    const layers = [bar('base', x, 1), bar('covered', x, covered / requested)]
    if (failed > 0) layers.push(bar('failed', x, failed / requested))
    return svg`<g data-covered=${covered} data-requested=${requested} data-at=${at}>${layers}</g>`
  })
  return svg`<svg class="heat" width="260" height="16" viewBox="0 0 ${monthNumber(to) - monthNumber(from) + 1} 16"
    preserveAspectRatio="none" aria-hidden="true">${bars}</svg>`
}

/** The verdict on the lake as it is now. */
async function trust() {
  if (wall !== null) return quiet('This server has an as_of limit, so it does not show the state of the lake today.')
  if (recording !== null) return quiet('pitlake status shows the state of the lake today.')
  const status = await statusNow()
  const reasons = (status.reasons ?? []).map(({ text, next }) => (next === null ? text : `${text}: ${next}`))
  return section(`Trust: ${status.trust}`, html`<div class="verdict ${status.ok ? 'clean' : 'undecided'}">
    <p>${status.text}</p>${list(reasons)}</div>`, quiet(`version ${status.version} of ${moment(status.committed_at)}`))
}

/** The document of `/healthz`. The server sends it with an error status if the lake cannot be trusted. */
async function statusNow() {
  try {
    return await (await request('healthz')).json()
  } catch (error) {
    if (isSuperseded(error) || !error.message.startsWith('{')) throw error
    return JSON.parse(error.message)
  }
}
