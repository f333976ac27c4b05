/** What is held of what was asked for, month by month, and whether the lake can be trusted. */

import { isSuperseded, post, recorded, rows, wall } from './ask.js'
import { ways } from './copies.js'
import { cellOf, html, list, moment, plainCell, quiet, section, svg, table } from './dom.js'
import { countsSql, monthsSql } from './questions.js'

export const title = 'Coverage'

export async function draw(main) {
  const [cells, all] = await Promise.all([rows(monthsSql), rows(countsSql)])
  const ends = cells.reduce(([a, b], { at }) => [Math.min(a, at), Math.max(b, at)], [Infinity, -Infinity])
  const cell = (value, name, { metric }) =>
    name === 'months' ? cellOf('td', heat(cells.filter((one) => one.metric === metric), ends)) : plainCell(value)
  const [first, ...others] = Object.keys(all[0] ?? {})
  const columns = [first, 'months', ...others]
  const range = cells.length === 0 ? '' : `, ${ends.map((at) => new Date(at).toISOString().slice(0, 7)).join(' to ')}`
  main.replaceChildren(await trust(), section(`Coverage${range}`,
    all.length === 0 ? quiet('Nothing had been requested by then.') : table(all, 'Coverage', { columns, cell }),
    ways(countsSql, 'counts', { ofLedger: true }), ways(monthsSql, 'months', { ofLedger: true })))
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
  if (wall !== null) return quiet('This server has an as_of limit, so it does not show the state of the lake today.')
  if (recorded !== null) return quiet('pitlake status shows the state of the lake today.')
  const judged = await post('healthz').then((answer) => answer.json(), (error) => {
    if (isSuperseded(error)) throw error
    return JSON.parse(error.message)
  })
  const reasons = (judged.reasons ?? []).map(({ text, next }) => (next === null ? text : `${text}: ${next}`))
  return section(`Trust: ${judged.trust}`, html`<div class="verdict ${judged.ok ? 'clean' : 'undecided'}">
    <p>${judged.text}</p>${list(reasons)}</div>`, quiet(`version ${judged.version} of ${moment(judged.committed_at)}`))
}
