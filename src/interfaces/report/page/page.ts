import { stressWords } from '../../../trust/results/stress-verdict.ts'
import { createHash } from 'node:crypto'
import { instantOf } from '../../../base/time.ts'
import type { LakeStanding } from '../status.ts'
import { type Trust, type Reason, verdictLimits } from '../trust.ts'
import type { StampFact, StatusPage, ViolationFact } from '../status-page.ts'
import { html, type Html } from './html.ts'
import { brief, bytes, instant, moment, percent, several, span, formatCount } from '../../../base/figures.ts'
import { versionMeta } from '../../../lake/ledger/pages.ts'
import { textsIn } from '../../../lake/store/sql.ts'
import { endpointSection } from './endpoints.ts'
import { universeSection } from './universe.ts'
import type { RunFact } from '../facts.ts'

const verdicts: Readonly<Record<Trust, string>> = {
  yes: 'Nothing contradicts it.',
  look: 'Look at this before you trust it.',
  no: 'It cannot be trusted as it is.',
}

/** Draws the head of the page: the provider, the version, and whether to trust it. */
function masthead({ standing, madeAt, program }: StatusPage): Html {
  const { committed_at } = standing
  const limits = verdictLimits(standing)
  const since = committed_at === null ? null : madeAt - instantOf(committed_at)
  return html`<header>
  <div class="mark"><b>pitlake</b> ${standing.synthetic && html`<span class="chip">synthetic data</span>`}</div>
  <dl class="ids">
    <div><dt>provider</dt><dd>${standing.provider ?? 'none yet'}</dd></div>
    <div><dt>version</dt><dd>${standing.version === 0 ? 'none yet' : formatCount(standing.version)}</dd></div>
    <div><dt>committed</dt><dd>${committed_at === null ? 'never' : html`<time datetime="${committed_at}">${moment(instantOf(committed_at))}</time>`}${since !== null && since >= 0 && html` <small>${span(since)} before this page</small>`}</dd></div>
    <div><dt>page of</dt><dd><time datetime="${new Date(madeAt * 1000).toISOString()}">${moment(madeAt)}</time> <small>${program}</small></dd></div>
  </dl>
</header>
<section class="verdict ${standing.trust}" aria-label="verdict">
  <div><h1>${standing.trust === 'yes' && standing.violations > 0 ? 'Some stored values differ upstream, within your limits.' : verdicts[standing.trust]}</h1><p>${limits.map(({ text }) => text).join('; ')}</p></div>
  ${standing.reasons.length > 0 && html`<ul>${standing.reasons.map(reason)}</ul>`}
</section>
<section class="gauges" aria-label="figures">${gauges(standing)}</section>`
}

function reason({ level, text, next }: Reason): Html {
  return html`<li class="${level}">${text}${next !== null && html` <code>${next}</code>`}</li>`
}

/** Describes whether a stored value was contradicted, and whether that was acknowledged. */
function contradictions({ violations, acknowledged, registry }: LakeStanding): Html {
  const open = violations + (registry.findings ?? 0)
  const acknowledgedCount = acknowledged + (registry.findings_acknowledged ?? 0)
  const quiet =
    acknowledgedCount === 0 ? 'no stored value was contradicted' : `${formatCount(acknowledgedCount)} acknowledged`
  return gauge('violations', formatCount(open), open > 0 ? 'both values are stored' : quiet, null, open > 0)
}

function gauges(standing: LakeStanding): Html[] {
  const { coverage, freshness, windows, requests, verified, registry } = standing
  const judged = freshness.fresh + freshness.pending + freshness.behind + freshness.stopped
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
      judged === 0 ? 'none' : `${formatCount(freshness.fresh)} of ${formatCount(judged)}`,
      `${formatCount(freshness.pending)} pending, ${formatCount(freshness.behind)} behind, ` +
        `${formatCount(freshness.stopped)} stopped`,
      judged === 0 ? null : freshness.fresh / judged,
    ),
    contradictions(standing),
    gauge(
      'gaps',
      formatCount(standing.gaps),
      `${formatCount(standing.pending)} pending, ${formatCount(windows.failed)} failed, ` +
        `${formatCount(windows.unsupported)} unsupported`,
      null,
      windows.failed > 0,
    ),
    gauge(
      'verified',
      coverage.held === 0 ? 'none' : percent(coverage.verified, coverage.held),
      verified.last_at === null ? 'not verified yet' : `last ${moment(instantOf(verified.last_at))}`,
      coverage.verified_share,
      verified.differing > 0,
    ),
    gauge(
      'points',
      brief(standing.points),
      `${formatCount(standing.series)} series, ${several(standing.files, 'file')}, ` +
        `${bytes(standing.bytes)}${changed(standing.schema_changes)}`,
      null,
    ),
    gauge(
      'requests',
      formatCount(requests.total),
      `${formatCount(requests.credits)} credits; busiest minute ${formatCount(requests.busiest_minute)} of ` +
        formatCount(requests.per_minute),
      requests.per_minute === 0 ? null : Math.min(1, requests.busiest_minute / requests.per_minute),
    ),
    gauge(
      'registry',
      registry.first_snapshot === null ? 'not yet' : several(registry.records['products'] ?? 0, 'product'),
      registry.first_snapshot === null
        ? 'no snapshot'
        : `${formatCount(records)} records, known since ${registry.first_snapshot}, ` +
            `${registry.feed_at === null ? 'feed not read' : `feed of ${moment(instantOf(registry.feed_at))}`}${changed(registry.schema_changes)}`,
      null,
    ),
  ]
}

/** Describes changes of a schema; empty if there are none. */
function changed(schemaChanges: number | null): string {
  return schemaChanges === null || schemaChanges === 0 ? '' : `, ${several(schemaChanges, 'schema change')}`
}

function gauge(label: string, figure: string, about: string, share: number | null, alarm = false): Html {
  const width = share === null ? null : (share * 100).toFixed(2)
  return html`<div class="gauge${alarm && ' alarm'}"><h2>${label}</h2><p class="figure">${figure}</p>${width !== null && html`<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect class="all" width="100" height="1"/><rect class="part" width="${width}" height="1"/></svg>`}<p class="about">${about}</p></div>`
}

const width = 720
const height = 180
const floor = 150

/** Draws all arrivals by how much of their rule's lag they took; those to the right of 1 exceed the rule. */
function lagSection({ lagBins: bins, readable }: StatusPage): Html {
  if (!readable) return html`<p class="bad">A data file cannot be read. <code>pitlake doctor</code> names it.</p>`
  const total = bins.reduce((sum, bin) => sum + bin.points, 0)
  if (total === 0)
    return html`<p class="none">No arrival was observed: the provider sends no computed_at, and no point came late.</p>`
  const late = bins.filter((bin) => bin.from >= 0.999).reduce((sum, bin) => sum + bin.points, 0)
  const most = bins.reduce((top, bin) => Math.max(top, bin.points), 1)
  const [left, right] = [Math.min(0.01, bins[0]?.from ?? 0.01), Math.max(100, bins.at(-1)?.to ?? 100)].map(Math.log10)
  const x = (ratio: number) => ((Math.log10(ratio) - (left ?? 0)) / ((right ?? 1) - (left ?? 0))) * (width - 2) + 1
  const y = (points: number) => floor - (floor - 14) * Math.sqrt(points / most)
  const words =
    `${percent(total - late, total)} of ${formatCount(total)} arrivals came by the time that their rule ` +
    `gives; ${formatCount(late)} came later.`
  return html`<p>${words}${late > 0 && ' These points have the observed time, not the time of the rule.'}</p>
<svg class="chart" role="img" viewBox="0 0 ${width} ${height}"><title>Arrival lag divided by the rule’s lag</title><desc>${words}</desc>
${bins.map((bin) => html`<rect class="${bin.from >= 0.999 ? 'late' : 'intime'}" x="${x(bin.from).toFixed(1)}" y="${y(bin.points).toFixed(1)}" width="${Math.max(1, x(bin.to) - x(bin.from) - 1).toFixed(1)}" height="${(floor - y(bin.points)).toFixed(1)}"><title>${label(bin.from)} to ${label(bin.to)} of the rule: ${several(bin.points, 'point')}</title></rect>`)}
<line class="base" x1="0" x2="${width}" y1="${floor}" y2="${floor}"/>
<line class="rule" x1="${x(1).toFixed(1)}" x2="${x(1).toFixed(1)}" y1="4" y2="${floor + 6}"/>
<text class="rulet" x="${(x(1) + 6).toFixed(1)}" y="14">the rule</text>
${[0.01, 0.1, 1, 10, 100, 1000].filter((mark) => x(mark) >= 0 && x(mark) <= width).map((mark) => html`<text class="t" x="${Math.min(width - 14, Math.max(12, x(mark))).toFixed(1)}" y="${floor + 20}" text-anchor="middle">${label(mark)}</text>`)}
</svg>
<p class="small">Lag divided by the rule’s lag, logarithmic. Heights by square root, so that one late point in ten thousand shows; the tallest bar holds ${brief(most)} points.</p>`
}

function label(ratio: number): string {
  const text =
    ratio >= 10 ? ratio.toFixed(0) : ratio >= 1 ? ratio.toFixed(1) : ratio >= 0.1 ? ratio.toFixed(2) : ratio.toFixed(3)
  return `${Number(text)}×`
}

/** Draws every contradiction with both values; the stored one stays. */
function violationSection({ violations, standing }: StatusPage): Html {
  if (violations.length === 0)
    return html`<p class="none">None: every point that was requested again came back unchanged.</p>`
  const { findings, findings_acknowledged: known } = standing.registry
  const all = standing.violations + standing.acknowledged + standing.reverted + (findings ?? 0) + (known ?? 0)
  const more = all - violations.length
  return html`${more > 0 && html`<p>The newest ${formatCount(violations.length)} of ${formatCount(all)}.</p>`}<div class="scroll" tabindex="0"><table>
<thead><tr><th scope="col">endpoint</th><th scope="col">series</th><th scope="col">t</th><th scope="col">kind</th><th scope="col" class="n">stored</th><th scope="col" class="n">offered</th><th scope="col">seen</th></tr></thead>
<tbody>${violations.map(violation)}</tbody></table></div>`
}

function violation(v: ViolationFact): Html {
  return html`<tr><td class="id">${v.metric}</td><td>${v.series} <small>${v.interval}</small></td><td>${v.t !== null && instant(v.t)}</td><td>${v.kind}${v.acknowledged !== null && html` <small title="${v.acknowledged}">acknowledged</small>`}${v.reverted && html` <small>reverted</small>`}</td><td class="n value">${shortened(v.stored)}</td><td class="n value bad">${shortened(v.offered)}</td><td>${moment(v.offeredAt)}</td></tr>
`
}

function shortened(value: string | null): Html | string {
  if (value === null) return 'none'
  return value.length <= 48 ? value : html`<span title="${value.slice(0, 2000)}">${value.slice(0, 46)}…</span>`
}

/** Draws the last runs: what was planned and what was done. */
function runSection({ runs }: StatusPage): Html {
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

/** Draws a plan as an outline and the result as a bar in it; the part beyond the plan is distinct. */
function pair(planned: number | null, done: number | null): Html {
  const most = Math.max(planned ?? 0, done ?? 0, 1)
  const at = (count: number | null) => (((count ?? 0) / most) * 100).toFixed(1)
  const words =
    `${done === null ? 'unknown' : formatCount(done)} done, ` +
    (planned === null ? 'no plan' : `${formatCount(planned)} planned`)
  return html`<td class="pair"><span>${done === null ? '–' : brief(done)} <small>of ${planned === null ? '–' : brief(planned)}</small></span><svg role="img" viewBox="0 0 100 1" preserveAspectRatio="none"><title>${words}</title><rect class="plan" width="${at(planned)}" height="1"/><rect class="done" y=".2" width="${at(done)}" height=".6"/></svg></td>`
}

const newest = 12

/** Draws the points that every commit added, and the newest commits by name. */
function versionSection({ versions }: StatusPage): Html {
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
    ) => html`<tr><td class="n">${formatCount(v.version)}</td><td>${moment(v.committed_at / 1_000_000)}</td><td>${v.job}</td><td class="n${v.points_added < 0 && ' bad'}">${formatCount(v.points_added)}</td><td class="n">${formatCount(v.files_added)}</td></tr>
`,
  )}</tbody></table></div>`
}

/** Draws the results that are kept for reproduction, and what is known of each. */
function stampSection({ stamps, stampsAt, standing }: StatusPage): Html {
  if (stamps.length === 0) return html`<p class="none">No result is stamped. <code>pitlake stamp</code> pins one.</p>`
  const more = standing.stamps - stamps.length
  return html`${more > 0 && html`<p>The newest ${formatCount(stamps.length)} of ${formatCount(standing.stamps)}.</p>`}<div class="scroll" tabindex="0"><table>
<thead><tr><th scope="col">file</th><th scope="col" class="n">version</th><th scope="col">stamped</th><th scope="col" class="n">rows</th><th scope="col">verdict</th></tr></thead>
<tbody>${stamps.map((stamp) => stamped(stamp, stampsAt))}</tbody></table></div>`
}

function stamped({ id, file, version, at, rows, verdict }: StampFact, place: string | null): Html {
  const name = place === null ? file : html`<a href="${place}/${id}.json">${file}</a>`
  const verdictText = verdict?.kind === 'stress' ? stressWords[verdict.verdict] : verdict?.verdict
  const words = verdict === null ? '' : verdict.kind === 'lookahead' ? `look-ahead ${verdictText}` : verdictText
  const mark =
    verdictText === 'falls apart' || verdictText === 'looks ahead'
      ? 'bad'
      : verdictText === 'proved' || verdictText === 'holds'
        ? 'ok'
        : ''
  return html`<tr><td class="id">${name}</td><td class="n">${formatCount(version)}</td><td>${moment(at)}</td><td class="n">${rows === null ? '' : formatCount(rows)}</td><td class="${mark}">${words}</td></tr>
`
}

/** Explains the page's colours and words. */
function notesSection({ silent }: StatusPage): Html {
  return html`${silent.length > 0 && html`<details><summary>${several(silent.length, 'endpoint')} requested, without a single point</summary><div class="scroll" tabindex="0"><table><tbody>${silent.map((s) => html`<tr><td class="id">${s.metric}</td><td>${s.state}</td><td>${s.reason}</td></tr>`)}</tbody></table></div></details>`}
<dl class="notes">
<dt>coverage</dt><dd>Stored intervals, as a share of all intervals that should be known by now, from the first point of each series on.</dd>
<dt>fresh</dt><dd>The newest due point is stored. <em>Pending</em>: requested, but not received yet. <em>Behind</em>: due, but not requested. <em>Stopped</em>: requested in vain for longer than the endpoint’s tolerance.</dd>
<dt>arrival</dt><dd>The time from the end of the interval until the point was known, by the provider’s clock or the clock of this lake. Backfilled points are left out.</dd>
<dt>violation</dt><dd>The provider now returns a different value. The stored value counts; both are stored.</dd>
<dt>verdict</dt><dd>For a stamped query: whether its plan proves that it does not look ahead. A query without such a proof may still be clean. For a statistic of <code>stress</code>: whether it holds if points are known later.</dd>
</dl>`
}

/**
 * Reads the style sheet, or the only script: a cursor over the map of months, without which the page shows everything,
 * too.
 */
function readAsset(ending: '.css' | '.js'): string {
  return textsIn(new URL('browser/', import.meta.url), ending)
    .map(([, text]) => text)
    .join('')
}

/** Marks text of this program's own as markup: styles, scripts. Never for anything that was read. */
const trusted = (markup: string): Html => ({ markup })

/**
 * Builds the status of a lake as one self-contained file: its policy forbids every connection, and allows only its own
 * script to run.
 */
export function statusPage(page: StatusPage): string {
  const { standing } = page
  const script = readAsset('.js')
  const title = `${standing.trust === 'yes' ? '' : '! '}pitlake ${standing.provider ?? ''} version ${standing.version}`
  const digest = createHash('sha256').update(script).digest('base64')
  const policy =
    `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${digest}'; img-src data:; base-uri ` +
    `'none'; form-action 'none'`
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="${versionMeta}" content="${String(standing.version)}">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${trusted(readAsset('.css'))}</style>
</head>
<body>
<main>
${masthead(page)}
${section('endpoints', 'Endpoints by month', endpointSection(page))}
${section('arrival', 'Arrival against the rule', lagSection(page))}
${section('registry', 'Registry universe', universeSection(page))}
${section('violations', 'Violations', violationSection(page))}
${section('runs', 'Runs, done of planned', runSection(page))}
${section('versions', 'Versions', versionSection(page))}
${section('stamps', 'Stamped results', stampSection(page))}
${section('notes', 'How to read this page', notesSection(page))}
</main>
<script>${trusted(script)}</script>
</body>
</html>
`.markup
}

function section(id: string, title: string, content: Html): Html {
  return html`<section aria-labelledby="${id}-title"><h2 id="${id}-title">${title}</h2>
${content}
</section>`
}
