import { instantOf } from '../../time.ts'
import type { LakeStanding } from '../status.ts'
import { type Reason, restsOn } from '../trust.ts'
import type { StatusPage } from '../status-page.ts'
import { type Html, html } from './html.ts'
import { brief, bytes, moment, percent, several, span, whole } from '../../words/figures.ts'

const verdicts: Readonly<Record<Exclude<LakeStanding['trust'], 'yes'>, string>> = {
  look: 'Look at this before you trust it.',
  no: 'It cannot be trusted as it is.',
}

/** Who, which version, and whether to trust it. */
export function masthead({ standing, madeAt, program }: StatusPage): Html {
  const { committed_at } = standing
  const { against, looked } = restsOn(standing)
  const since = committed_at === null ? null : madeAt - instantOf(committed_at)
  return html`<header>
  <div class="mark"><b>pitlake</b> ${standing.synthetic && html`<span class="chip">synthetic data</span>`}</div>
  <dl class="ids">
    <div><dt>provider</dt><dd>${standing.provider ?? 'none yet'}</dd></div>
    <div><dt>version</dt><dd>${standing.version === 0 ? 'none yet' : whole(standing.version)}</dd></div>
    <div><dt>committed</dt><dd>${committed_at === null ? 'never' : html`<time datetime="${committed_at}">${moment(instantOf(committed_at))}</time>`}${since !== null && since >= 0 && html` <small>${span(since)} before this page</small>`}</dd></div>
    <div><dt>page of</dt><dd><time datetime="${new Date(madeAt * 1000).toISOString()}">${moment(madeAt)}</time> <small>${program}</small></dd></div>
  </dl>
</header>
<section class="verdict ${standing.trust}" aria-label="verdict">
  <div><h1>${standing.trust === 'yes' ? `${against.charAt(0).toUpperCase()}${against.slice(1)}.` : verdicts[standing.trust]}</h1><p>${looked}</p></div>
  ${standing.reasons.length > 0 && html`<ul>${standing.reasons.map(reason)}</ul>`}
</section>
<section class="gauges" aria-label="figures">${gauges(standing)}</section>`
}

function reason({ level, text, next }: Reason): Html {
  return html`<li class="${level}">${text}${next !== null && html` <code>${next}</code>`}</li>`
}

/** Whether a stored value was contradicted, and whether somebody took note. */
function contradictions({ violations, accepted, registry }: LakeStanding): Html {
  const open = violations + (registry.findings ?? 0)
  const known = accepted + (registry.findings_accepted ?? 0)
  const quiet = known === 0 ? 'no stored value was contradicted' : `${whole(known)} accepted`
  return gauge('violations', whole(open), open > 0 ? 'both values are kept' : quiet, null, open > 0)
}

function gauges(standing: LakeStanding): Html[] {
  const { coverage, freshness, windows, requests, verified, registry } = standing
  const judged = freshness.fresh + freshness.awaited + freshness.behind + freshness.stopped
  const records = Object.values(registry.records).reduce((a, b) => a + b, 0)
  return [
    gauge(
      'coverage',
      percent(coverage.held, coverage.due),
      `${brief(coverage.held)} of ${brief(coverage.due)} due points`,
      coverage.share,
    ),
    gauge(
      'fresh',
      judged === 0 ? 'none' : `${whole(freshness.fresh)} of ${whole(judged)}`,
      `${whole(freshness.awaited)} awaited, ${whole(freshness.behind)} behind, ${whole(freshness.stopped)} stopped`,
      judged === 0 ? null : freshness.fresh / judged,
    ),
    contradictions(standing),
    gauge(
      'gaps',
      whole(standing.gaps),
      `${whole(standing.awaiting)} awaited, ${whole(windows.failed)} failed, ${whole(windows.unsupported)} unsupported`,
      null,
      windows.failed > 0,
    ),
    gauge(
      'verified',
      coverage.held === 0 ? 'none' : percent(coverage.verified, coverage.held),
      verified.last_at === null ? 'not asked again yet' : `last ${moment(instantOf(verified.last_at))}`,
      coverage.verified_share,
      verified.differing > 0,
    ),
    gauge(
      'points',
      brief(standing.points),
      `${whole(standing.series)} series, ${several(standing.files, 'file')}, ${bytes(standing.bytes)}${changed(standing.schema_changes)}`,
      null,
    ),
    gauge(
      'requests',
      whole(requests.total),
      `${whole(requests.credits)} credits; busiest minute ${whole(requests.busiest_minute)} of ${whole(requests.per_minute)}`,
      requests.per_minute === 0 ? null : Math.min(1, requests.busiest_minute / requests.per_minute),
    ),
    gauge(
      'registry',
      registry.first_snapshot === null ? 'not yet' : several(registry.records['products'] ?? 0, 'product'),
      registry.first_snapshot === null
        ? 'no snapshot'
        : `${whole(records)} records, known since ${registry.first_snapshot}, ${registry.feed_at === null ? 'feed not read' : `feed of ${moment(instantOf(registry.feed_at))}`}${changed(registry.schema_changes)}`,
      null,
    ),
  ]
}

/** What of a schema changed, if anything did. */
function changed(schemaChanges: number | null): string {
  return schemaChanges === null || schemaChanges === 0 ? '' : `, ${several(schemaChanges, 'schema change')}`
}

function gauge(label: string, figure: string, about: string, share: number | null, alarm = false): Html {
  const width = share === null ? null : (share * 100).toFixed(2)
  return html`<div class="gauge${alarm && ' alarm'}"><h2>${label}</h2><p class="figure">${figure}</p>${width !== null && html`<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect class="all" width="100" height="1"/><rect class="part" width="${width}" height="1"/></svg>`}<p class="about">${about}</p></div>`
}
