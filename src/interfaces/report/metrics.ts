import { type Instant, instantOf } from '../../base/time.ts'
import type { StoredArrivals } from '../../trust/availability-audit.ts'
import type { SeriesStanding } from './freshness.ts'
import { jobLocks } from './facts.ts'
import type { JudgedStanding, LakeStanding } from './status.ts'

type Labels = Readonly<Record<string, string>>
type Sample = readonly [labels: Labels, value: number | null]

/** Metric: all its samples are together under one head. */
interface Family {
  readonly name: string
  readonly help: string
  readonly samples: readonly Sample[]
}

/**
 * Formats the standing of a lake in the text format of Prometheus; an unknown value has no sample. `creditsPerDay`:
 * what a watch may spend.
 */
export function metricsText(
  { standing, series, arrivals }: JudgedStanding,
  now: Instant,
  creditsPerDay: number | null = null,
): string {
  const families = [
    ...ofLake(standing),
    ...ofAsking(standing, now, creditsPerDay),
    ...ofSeries(series),
    ...ofLags(arrivals ?? []),
  ]
  return families.map(written).join('')
}

function written({ name, help, samples }: Family): string {
  const measured = samples.filter(([, value]) => value !== null)
  if (measured.length === 0) return ''
  const lines = measured.map(([labels, value]) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`)
    return `pitlake_${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
  })
  return `# HELP pitlake_${name} ${help}\n# TYPE pitlake_${name} gauge\n${lines.join('')}`
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

const singleSample = (name: string, help: string, value: number | null): Family => ({
  name,
  help,
  samples: [[{}, value]],
})

function by(name: string, help: string, label: string, values: Readonly<Record<string, number | null>>): Family {
  return { name, help, samples: Object.entries(values).map(([key, value]) => [{ [label]: key }, value]) }
}

const instant = (text: string | null): number | null => (text === null ? null : instantOf(text))

function ofLake(standing: LakeStanding): Family[] {
  const { windows, freshness, coverage, trust } = standing
  const { overdue_seconds, ...fresh } = freshness
  return [
    by('trust', 'Whether the lake can be trusted now: 1 at the word that holds.', 'word', {
      yes: Number(trust === 'yes'),
      look: Number(trust === 'look'),
      no: Number(trust === 'no'),
    }),
    singleSample('version', 'The newest version of the lake.', standing.version),
    singleSample('committed_timestamp_seconds', 'When it was committed, Unix time.', instant(standing.committed_at)),
    singleSample('synthetic', 'Whether the data comes from a sandbox.', Number(standing.synthetic)),
    singleSample('series', 'Series that the lake knows.', standing.series),
    singleSample('points', 'Stored points.', standing.points),
    singleSample('files', 'Live files.', standing.files),
    singleSample('bytes', 'Bytes of live files.', standing.bytes),
    singleSample('files_damaged', 'Live files that are lost or cut.', standing.files_damaged),
    singleSample('newest_t_seconds', 'The largest stored t, Unix time.', instant(standing.newest)),
    by('windows', 'Windows by their state.', 'state', windows),
    singleSample('gaps', 'Windows in which points are missing for good.', standing.gaps),
    singleSample('pending', 'Windows in which a point may still arrive.', standing.pending),
    by('violations', 'Stored values that differ upstream.', 'state', {
      open: standing.violations,
      acknowledged: standing.acknowledged,
      reverted: standing.reverted,
    }),
    by('coverage_points', 'Intervals that are due, stored, and verified.', 'what', {
      due: coverage.due,
      held: coverage.held,
      verified: coverage.verified,
    }),
    by('fresh_series', 'Series by how far they are from what is due.', 'state', fresh),
    singleSample(
      'overdue_seconds',
      'How long the most overdue point that no fetch requested has been due.',
      overdue_seconds,
    ),
    singleSample(
      'rules_contradicted',
      'Availability rules that the arrivals contradict.',
      standing.rules?.contradicted ?? null,
    ),
  ]
}

function ofAsking(
  { requests, registry, running, verified }: LakeStanding,
  now: Instant,
  creditsPerDay: number | null,
): Family[] {
  const feed = instant(registry.feed_at)
  const creditsLeft = creditsPerDay === null ? null : Math.max(0, creditsPerDay - requests.credits_today)
  return [
    singleSample('requests', 'Requests sent so far.', requests.total),
    singleSample('credits', 'Credits spent so far.', requests.credits),
    singleSample('requests_day', 'Requests of the last 24 hours.', requests.day),
    singleSample('credits_day', 'Credits of the last 24 hours.', requests.day_credits),
    singleSample('credits_today', 'Credits spent since midnight UTC.', requests.credits_today),
    singleSample('credits_left', 'Credits that a watch may still spend until midnight UTC.', creditsLeft),
    {
      name: 'requests_by_outcome',
      help: 'Requests on record by how they ended.',
      samples: requests.by_outcome.map(({ api, outcome, requests: value }) => [{ api, outcome }, value]),
    },
    singleSample(
      'requests_busiest_minute',
      'Requests of the busiest minute of the last 24 hours.',
      requests.busiest_minute,
    ),
    singleSample(
      'requests_per_minute_allowed',
      'Requests a minute that the configuration allows.',
      requests.per_minute,
    ),
    {
      name: 'job_running',
      help: 'Whether a job that holds this lock is running.',
      samples: jobLocks.map((job) => [{ job }, Number(running.includes(job))]),
    },
    by('registry_records', 'Open records of the registry by table.', 'table', registry.records),
    by('registry_findings', 'Records of the registry that contradict what snapshot and feed gave.', 'state', {
      open: registry.findings,
      acknowledged: registry.findings_acknowledged,
    }),
    singleSample('registry_epoch', 'Epochs of the feed seen.', registry.epoch),
    singleSample(
      'registry_feed_age_seconds',
      'Seconds since the feed was read to its tail.',
      feed === null ? null : now - feed,
    ),
    singleSample('verified_windows', 'Windows that were requested again and compared.', verified.windows),
  ]
}

/** Builds metrics by endpoint and interval: how many series are in each state, and how overdue the worst is. */
function ofSeries(series: readonly SeriesStanding[]): Family[] {
  const groups = Map.groupBy(series, ({ metric, interval }) => `${metric} ${interval}`)
  const labelled = [...groups.values()].flatMap((standings) =>
    standings.slice(0, 1).map(({ metric, interval }) => ({ labels: { metric, interval }, own: standings })),
  )
  const newest = (standings: readonly SeriesStanding[]): number | null => {
    const newestPoints = standings.flatMap((each) => each.newest ?? [])
    return newestPoints.length === 0 ? null : Math.min(...new Set(newestPoints))
  }
  const overdue = (standings: readonly SeriesStanding[]): number =>
    standings.reduce((most, each) => Math.max(most, each.overdue), 0)
  return [
    {
      name: 'endpoint_overdue_seconds',
      help: 'How long the most overdue point of an endpoint that no fetch requested has been due.',
      samples: labelled.map(({ labels, own }) => [labels, overdue(own)]),
    },
    {
      name: 'endpoint_newest_t_seconds',
      help: 'The newest t of that series of an endpoint which is furthest behind, Unix time.',
      samples: labelled.map(({ labels, own }) => [labels, newest(own)]),
    },
  ]
}

function ofLags(arrivalsByMetric: readonly StoredArrivals[]): Family[] {
  const samples = arrivalsByMetric.flatMap(({ endpoint, interval, arrivals }) => {
    const quantiles = { '0.5': arrivals.p50, '0.95': arrivals.p95, '0.99': arrivals.p99 }
    return Object.entries(quantiles).map(
      ([quantile, lag]): Sample => [{ metric: endpoint.path, interval, quantile }, lag],
    )
  })
  return [{ name: 'endpoint_lag_seconds', help: 'How long after the end of its interval a point arrived.', samples }]
}
