import { instantOf } from '../../time.ts'
import type { StatusPage, StampFact, ViolationFact } from '../status-page.ts'
import { type Html, html } from './html.ts'
import type { RunFact } from '../facts.ts'
import { brief, instant, moment, several, span, whole } from '../../words/figures.ts'

/** Every contradiction with both values; the stored one holds. */
export function violationSection({ violations, standing }: StatusPage): Html {
  if (violations.length === 0)
    return html`<p class="none">None: whatever was asked again came back as it is stored.</p>`
  const { findings, findings_accepted: known } = standing.registry
  const all = standing.violations + standing.accepted + standing.passed + (findings ?? 0) + (known ?? 0)
  const more = all - violations.length
  return html`${more > 0 && html`<p>The newest ${whole(violations.length)} of ${whole(all)}.</p>`}<div class="scroll" tabindex="0"><table>
<thead><tr><th scope="col">endpoint</th><th scope="col">series</th><th scope="col">t</th><th scope="col">kind</th><th scope="col" class="n">stored</th><th scope="col" class="n">offered</th><th scope="col">seen</th></tr></thead>
<tbody>${violations.map(violation)}</tbody></table></div>`
}

function violation(v: ViolationFact): Html {
  return html`<tr><td class="id">${v.metric}</td><td>${v.series} <small>${v.interval}</small></td><td>${v.t !== null && instant(v.t)}</td><td>${v.kind}${v.accepted !== null && html` <small title="${v.accepted}">accepted</small>`}${v.passed && html` <small>passed</small>`}</td><td class="n value">${shortened(v.stored)}</td><td class="n value bad">${shortened(v.offered)}</td><td>${moment(v.offeredAt)}</td></tr>
`
}

function shortened(value: string | null): Html | string {
  if (value === null) return 'none'
  return value.length <= 48 ? value : html`<span title="${value.slice(0, 2000)}">${value.slice(0, 46)}…</span>`
}

/** The last runs: what was planned and what was done. */
export function runSection({ runs }: StatusPage): Html {
  if (runs.length === 0) return html`<p class="none">No run is on record.</p>`
  return html`<div class="scroll" tabindex="0"><table class="runs">
<thead><tr><th scope="col">begun</th><th scope="col">job</th><th scope="col" class="n">took</th><th scope="col">requests</th><th scope="col">credits</th><th scope="col">points</th><th scope="col">ended</th></tr></thead>
<tbody>${runs.map(run)}</tbody></table></div>`
}

function run(fact: RunFact): Html {
  const ended = fact.seconds === null ? 'not recorded' : (fact.stopped_by ?? 'complete')
  return html`<tr><td>${fact.started_at === null ? '' : moment(instantOf(fact.started_at))}</td><td title="${fact.command}">${fact.job}</td><td class="n">${fact.seconds === null ? '' : span(fact.seconds)}</td>${(['requests', 'credits', 'points'] as const).map((key) => pair(fact.plan[key], fact.actual[key]))}<td class="${ended === 'complete' ? 'ok' : 'bad'}">${ended}</td></tr>
`
}

/** Planned as an outline, done as a bar in it; what went beyond the plan stands out. */
function pair(planned: number | null, done: number | null): Html {
  const most = Math.max(planned ?? 0, done ?? 0, 1)
  const at = (count: number | null) => (((count ?? 0) / most) * 100).toFixed(1)
  const words = `${done === null ? 'unknown' : whole(done)} done, ${planned === null ? 'no plan' : `${whole(planned)} planned`}`
  return html`<td class="pair"><span>${done === null ? '–' : brief(done)} <small>of ${planned === null ? '–' : brief(planned)}</small></span><svg role="img" viewBox="0 0 100 1" preserveAspectRatio="none"><title>${words}</title><rect class="plan" width="${at(planned)}" height="1"/><rect class="done" y=".2" width="${at(done)}" height=".6"/></svg></td>`
}

const newest = 12

/** What every commit brought, and the newest ones by name. */
export function versionSection({ versions }: StatusPage): Html {
  if (versions.length === 0) return html`<p class="none">Nothing has been committed.</p>`
  const most = versions.reduce((top, v) => Math.max(top, Math.abs(v.points_added)), 1)
  const bars = versions.map((v, index) => {
    const tall = v.points_added === 0 ? 0.02 : Math.max(0.04, Math.sqrt(Math.abs(v.points_added) / most))
    return html`<rect class="${v.points_added < 0 ? 'lost' : v.job === 'fetch' ? 'fetch' : 'other'}" x="${index}" y="${(1 - tall).toFixed(3)}" width="0.8" height="${tall.toFixed(3)}"><title>version ${v.version}, ${v.job}, ${moment(v.committed_at / 1_000_000)}: ${several(v.points_added, 'point')}, ${several(v.files_added, 'file')}</title></rect>`
  })
  return html`<svg class="versions" role="img" viewBox="0 0 ${Math.max(60, versions.length)} 1" preserveAspectRatio="none"><title>Points by commit, heights by square root</title>${bars}</svg>
<div class="scroll" tabindex="0"><table class="narrow"><thead><tr><th scope="col" class="n">version</th><th scope="col">committed</th><th scope="col">job</th><th scope="col" class="n">points</th><th scope="col" class="n">files</th></tr></thead><tbody>
${versions
  .slice(-newest)
  .toReversed()
  .map(
    (
      v,
    ) => html`<tr><td class="n">${whole(v.version)}</td><td>${moment(v.committed_at / 1_000_000)}</td><td>${v.job}</td><td class="n${v.points_added < 0 && ' bad'}">${whole(v.points_added)}</td><td class="n">${whole(v.files_added)}</td></tr>
`,
  )}</tbody></table></div>`
}

/** The results that are kept so that they can be made again, and what is known of each. */
export function stampSection({ stamps, stampsAt, standing }: StatusPage): Html {
  if (stamps.length === 0) return html`<p class="none">No result is stamped. <code>pitlake stamp</code> pins one.</p>`
  const more = standing.stamps - stamps.length
  return html`${more > 0 && html`<p>The newest ${whole(stamps.length)} of ${whole(standing.stamps)}.</p>`}<div class="scroll" tabindex="0"><table>
<thead><tr><th scope="col">file</th><th scope="col" class="n">version</th><th scope="col">stamped</th><th scope="col" class="n">rows</th><th scope="col">verdict</th></tr></thead>
<tbody>${stamps.map((one) => stamped(one, stampsAt))}</tbody></table></div>`
}

function stamped({ id, file, version, at, rows, verdict }: StampFact, place: string | null): Html {
  const name = place === null ? file : html`<a href="${place}/${id}.json">${file}</a>`
  const said = verdict?.kind === 'stress' && verdict.verdict === 'falls' ? 'falls apart' : verdict?.verdict
  const words = verdict === null ? '' : verdict.kind === 'lookahead' ? `look-ahead ${said}` : said
  const mark = said === 'falls apart' ? 'bad' : said === 'proved' || said === 'holds' ? 'ok' : ''
  return html`<tr><td class="id">${name}</td><td class="n">${whole(version)}</td><td>${moment(at)}</td><td class="n">${rows === null ? '' : whole(rows)}</td><td class="${mark}">${words}</td></tr>
`
}

/** What the page's colours and words mean. */
export function notesSection({ silent }: StatusPage): Html {
  return html`${silent.length > 0 && html`<details><summary>${several(silent.length, 'endpoint')} asked without a single point</summary><div class="scroll" tabindex="0"><table><tbody>${silent.map((s) => html`<tr><td class="id">${s.metric}</td><td>${s.state}</td><td>${s.reason}</td></tr>`)}</tbody></table></div></details>`}
<dl class="notes">
<dt>coverage</dt><dd>Intervals held, of all that the availability rules make due now, from the first point of each series on.</dd>
<dt>fresh</dt><dd>The newest due point is held. <em>Awaited</em>: asked for, not there yet. <em>Behind</em>: due and not asked for. <em>Stopped</em>: asked in vain for longer than the endpoint’s tolerance.</dd>
<dt>arrival</dt><dd>From the end of the interval to the instant at which the point could be known, as the provider’s clock or this lake saw it. Backfilled history is left out.</dd>
<dt>violation</dt><dd>The provider now says something else than is stored. The stored value holds; both are kept.</dd>
<dt>verdict</dt><dd>Of a stamped query: whether its plan proves that it looks nowhere ahead; one that is not proved may be clean all the same. Of a figure: whether it bears later points.</dd>
</dl>`
}
