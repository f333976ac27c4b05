import { several } from '../../base/figures.ts'
import { isObject } from '../../base/json.ts'
import { standardRule } from '../../catalog/catalogue.ts'
import { readAssets } from '../metrics/assets.ts'
import { readMetadata } from '../metrics/metadata-readings.ts'
import { readLimits } from '../http/governor.ts'
import { describeRule, lagOf } from '../../catalog/rule-kinds.ts'
import { day, formatDate, formatInstant, hour, weekdayAt } from '../../base/time.ts'
import { type Assessment, holds, type Judges, speaksAgainst, unknown, type Yaml } from './finding.ts'
import { type HeardAnswer, whyNot } from './answers.ts'
import { listsIn, wrongKeys } from './keys.ts'
import { isComputed, meaningOf, pointsIn, type Point } from './timestamp.ts'
import type { MetricsSeen } from './metrics.ts'

/** The judges of the metrics API. */
export const metricsJudges: Judges<MetricsSeen> = {
  'query keys of the metrics API': queryKeysHold,
  'meaning of `t`': ({ days, again, settings, endpoint }) =>
    withPoints(days, (points, at) => {
      const { seconds } = { seconds: 1800, ...standardRule(endpoint) }
      const { meaning, evidence } = meaningOf(points, at, seconds, pointsIn(again?.body))
      if (meaning === null) return unknown(evidence)
      return meaning === settings.timestamp
        ? holds(evidence)
        : speaksAgainst(evidence, { metrics: { timestamp: meaning } })
    }),
  'first day of a week': ({ weeks, settings }) =>
    withPoints(weeks, (points) => {
      const found = new Set(points.map(timeOf).filter(Number.isFinite).map(weekdayAt))
      const [first] = found
      if (first === undefined || found.size > 1) return unknown(`weeks of ${found.size} days of the week`)
      const evidence = `${points.length} weeks begin on ${first}`
      return first === settings.weekStart
        ? holds(evidence)
        : speaksAgainst(evidence, { metrics: { week_start: first } })
    }),
  'metadata of a path': metadataHold,
  'statistics of the lag': () => unknown('only `pitlake watch` requests them, and it works without them'),
  'since, until': windowHolds,
  'interval omitted': () => unknown('it is always sent'),
  'publication lag': lagHolds,
  'the Sharpe signal\'s "one-day lag"': () =>
    unknown('only polls around 04:00 UTC show it: pitlake watch, then audit availability'),
  'start of history': ({ metadata, wire }) => {
    const read = metadata?.bytes && wire.metadata ? readMetadata(text(metadata), wire.metadata) : null
    const { min = null } = read ?? {}
    return min === null ? unknown('no metadata contain it') : holds(`the metadata say ${formatDate(min)}`)
  },
  'longest range': () => unknown('only a long request shows it: pitlake fetch halves what is refused'),
  cost: ({ days }) => {
    const costHeaders = Object.entries(days?.headers ?? {}).filter(([name]) => /credit|cost/.test(name))
    return unknown(costHeaders.length === 0 ? 'no answer contains its cost' : `headers say ${named(costHeaders)}`)
  },
  rate: (seen) => rateHolds(ofPoints(seen), seen.settings.requestsPerMinute),
  'names that stand for real ones': ({ nameless: { ambiguous, unlisted, paths, exchanges } }) => {
    const parts = [
      ambiguous > 0 && `${several(ambiguous, 'path')} with several real names: choose under metrics.paths`,
      unlisted > 0 && `${several(unlisted, 'path')} that the provider does not list`,
      paths > 0 &&
        `${several(paths, 'path')} and the exchanges of ${several(exchanges, 'endpoint')}: init or fetch looks them up`,
      paths === 0 && exchanges > 0 && `the exchanges of ${several(exchanges, 'endpoint')}: fetch looks them up`,
    ].filter((part) => part !== false)
    return parts.length === 0 ? holds('all are known') : unknown(parts.join('; '))
  },
  'extra selectors (quote currency, period)': ({ metadata, wire, asset, keys }) => {
    const lists = listsIn(metadata?.body, wire, asset)?.lists
    if (lists === undefined) return unknown('no metadata contain them')
    const more = Object.keys(lists).filter((name) => !Object.values(keys).includes(name))
    return holds(more.length === 0 ? 'the metadata name none' : `the metadata name ${more.join(', ')}`)
  },
  'body of points': ({ days }) => bodyHolds(days),
  '`computed_at`': ({ days, endpoint }) => withPoints(days, (points) => computedHolds(points, endpoint.path)),
  'object and array values': valuesHold,
  null: ({ days, hours }) => {
    const some = [days, hours].some((heard) => pointsIn(heard?.body)?.some(({ v }) => v === null))
    return some ? holds('a null came') : unknown('no null came')
  },
  'order, duplicates': ({ days }) =>
    withPoints(days, (points) => {
      const times = points.map(timeOf)
      const twice = times.length - new Set(times).size
      const sorted = times.every((t, at) => at === 0 || t >= (times[at - 1] ?? t))
      const values = new Set(points.map((point) => JSON.stringify(point))).size
      if (values > new Set(times).size) return speaksAgainst('two values for one `t`')
      return holds(`${sorted ? 'ascending' : 'not in order'}, ${twice === 0 ? 'none' : twice} twice`)
    }),
  'a point that says `asset` or `metric`': ({ days, asset, endpoint }) =>
    withPoints(days, (points) => {
      const named = points
        .flatMap((point) => [point['asset'], point['metric']])
        .filter((name) => typeof name === 'string')
      const ownNames = [asset, ...endpoint.path.split('/'), endpoint.path].map((name) => name.toLowerCase())
      const otherName = named.find((name) => !ownNames.includes(name.toLowerCase()))
      if (otherName !== undefined) return speaksAgainst(`a point says ${otherName}: its body goes into quarantine`)
      return named.length === 0 ? unknown('no point contains either') : holds('points contain what was requested')
    }),
  'integers beyond 2^53': ({ days, hours }) => {
    const bodies = [days, hours].flatMap((heard) => (heard?.bytes ? [text(heard)] : []))
    const beyond = bodies.flatMap((body) => body.match(/(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g) ?? [])
    const inexact = beyond.find((digits) => BigInt(Number(digits)) !== BigInt(digits))
    return inexact === undefined ? unknown('none came') : holds(`${inexact} came: its text goes to \`extra\``)
  },
  'unknown fields of a point': ({ days }) =>
    withPoints(days, (points) => {
      const more = furtherKeys(points)
      return holds(more.length === 0 ? 'none came' : `kept in \`extra\`: ${more.join(', ')}`)
    }),
  'endpoints without since and until': () => unknown('not requested: they send their whole series'),
  'endpoints without an interval': () => unknown('not requested: they send their whole series'),
  'grids that depend on the requested range': () => unknown('two long requests of one heatmap would show it'),
  'listing of assets': ({ assets }) => assetsHold(assets),
  'body of an error': (seen) => errorsHold(answers(seen)),
  'reset of a limit': (seen) => resetHolds(ofPoints(seen)),
  'reuse of ids': ({ assets }) => {
    const ids = assets?.bytes ? (readAssets(text(assets)) ?? []).map(({ id }) => id) : []
    const folded = new Set(ids.map((id) => id.toLowerCase()))
    return folded.size < ids.length
      ? holds('ids that differ in case alone are listed')
      : unknown('no two listed ids differ in case alone')
  },
}

function answers(seen: MetricsSeen): HeardAnswer[] {
  return [...ofPoints(seen), seen.assets, seen.metadata].filter((heard) => heard !== null)
}

/** Returns the answers about points; metadata have a limit of their own. */
function ofPoints({ days, first, weeks, hours }: MetricsSeen): HeardAnswer[] {
  return [days, first, weeks, hours].filter((heard) => heard !== null)
}

function withPoints(heard: HeardAnswer | null, judge: (points: readonly Point[], at: number) => Assessment) {
  const points = pointsIn(heard?.body)
  if (heard === null || points === null) return unknown(whyNot(heard))
  if (!points.some(({ t }) => typeof t === 'number'))
    return unknown(points.length === 0 ? 'no points came' : 'no point has a `t`')
  return judge(points, heard.at)
}

const timeOf = ({ t }: Point): number => (typeof t === 'number' ? t : Number.NaN)

/** Decodes the body of a 200 as text. */
const text = (heard: HeardAnswer): string => new TextDecoder().decode(heard.bytes ?? new Uint8Array())

function named(entries: readonly (readonly [string, string])[]): string {
  return entries.map(([name, value]) => `${name}: ${value.slice(0, 60)}`).join(', ')
}

function queryKeysHold({ first, days, keys, taken, wire, windows }: MetricsSeen): Assessment {
  if (first === null || days === null) return unknown(whyNot(days))
  const changed = Object.entries(keys).filter(([name, key]) => wire.queryKeys[name as keyof typeof keys] !== key)
  const words = 'words' in first.outcome ? `: ${first.outcome.words}` : ''
  if (taken && changed.length === 0)
    return holds(`${Object.values(keys).slice(0, 6).join(' ')} were taken and have effect`)
  const instead = changed.map(([name, key]) => `${name} is ${key}`).join(', ')
  if (taken) return speaksAgainst(`${instead}${words}`, { metrics: { query_keys: Object.fromEntries(changed) } })
  const wrong = wrongKeys(days, windows.days)
  if (wrong.length === 0) return unknown(whyNot(days))
  const how = days.outcome.kind === 'body' ? 'has no effect' : 'is refused'
  const evidence = `${wrong.map((name) => wire.queryKeys[name]).join(' and ')} ${how}${words}; no usual name is taken`
  const next = "set metrics.query_keys by the provider's own pages"
  return { verdict: 'contradicted', evidence: `${evidence}: ${next}`, yaml: null }
}

/**
 * Judges whether ranges include `since`. One point may be missing by itself, so only a `since` that no window shows
 * counts as left out.
 */
function windowHolds({ days, hours, windows }: MetricsSeen): Assessment {
  return withPoints(days, (daily) => {
    const hourly = pointsIn(hours?.body) ?? []
    const looks = [
      { points: daily, since: windows.days.since, spacing: day },
      { points: hourly, since: windows.hours.since, spacing: hour },
    ].map(({ points, since, spacing }) => {
      const times = new Set(points.map(timeOf))
      return { first: times.has(since), second: times.has(since + spacing) }
    })
    if (looks.every(({ first, second }) => second && !first)) return speaksAgainst('the point at `since` is left out')
    if (!looks.some(({ first }) => first)) return unknown('no point lies at `since`')
    if (hourly.length === 0) return holds('the point at `since` came; of `until` nothing tells')
    const beyond = hourly.some((point) => timeOf(point) === windows.hours.until)
    return holds(`the point at \`since\` came, the one at \`until\` ${beyond ? 'too: it is dropped' : 'did not'}`)
  })
}

function metadataHold({ metadata, wire, asset }: MetricsSeen): Assessment {
  if (wire.metadata === null) return unknown('they are not requested (metrics.metadata: false)')
  if (metadata === null || metadata.outcome.kind !== 'body')
    return metadata?.outcome.kind === 'gone'
      ? holds('there are none (404): planned without')
      : unknown(whyNot(metadata))
  const lists = listsIn(metadata.body, wire, asset)
  if (lists === null || !isObject(metadata.body))
    return speaksAgainst('no lists of values by parameter in them', { metrics: { metadata: false } })
  const renamed: Record<string, string> = lists.name === wire.metadata.parameters ? {} : { parameters: lists.name }
  const range = Object.entries(metadata.body).find(
    ([name, value]) =>
      name !== lists.name && isObject(value) && Object.values(value).some((at) => typeof at === 'number'),
  )
  if (range !== undefined && !isObject(metadata.body[wire.metadata.timerange])) renamed['timerange'] = range[0]
  const bounds = Object.entries((range?.[1] ?? {}) as Point).filter(([, at]) => typeof at === 'number')
  const [least] = bounds.toSorted(([, a], [, b]) => Number(a) - Number(b))
  if (least !== undefined && !bounds.some(([name]) => name === wire.metadata?.min)) renamed['min'] = least[0]
  const what = `${Object.keys(lists.lists).length} parameters under \`${lists.name}\``
  return Object.keys(renamed).length === 0
    ? holds(what)
    : speaksAgainst(
        `${what}; ${Object.entries(renamed)
          .map(([key, name]) => `${key} is ${name}`)
          .join(', ')}`,
        { metrics: { metadata: renamed } },
      )
}

function lagHolds({ days, endpoint, settings }: MetricsSeen): Assessment {
  return withPoints(days, (points, at) => {
    const { meaning } = meaningOf(points, at, 1800, null)
    const ends = (point: Point): number => timeOf(point) + (meaning === 'interval_end' ? 0 : day)
    const lags = points.flatMap((point) =>
      isComputed(point['computed_at']) ? [point['computed_at'] - ends(point)] : [],
    )
    const past = lags.filter((lag) => lag >= 0 && lag < 30 * day)
    if (meaning === null || past.length === 0)
      return unknown('only polls show it: pitlake watch, then audit availability')
    const most = Math.max(...past)
    const rule = standardRule(endpoint)
    const evidence =
      `${endpoint.path}: at most ${Math.ceil(most / 60)} min after the day's end; the rule is ` + describeRule(rule)
    const limit = lagOf(rule) ?? Infinity
    // A point that is late now and then is dated by its own computed_at.
    const late = past.filter((lag) => lag > limit).length
    if (late * 5 <= past.length || rule.trust === 'rule') return holds(evidence)
    const lag: Yaml = { lag: `${Math.ceil((most * 1.5) / 600) * 10}m` }
    return settings.availability[endpoint.path] === undefined
      ? speaksAgainst(evidence, { metrics: { availability: { [endpoint.path]: lag } } })
      : unknown(`${evidence}, which the configuration states`)
  })
}

/** Judges the rate that headers report against the configured one. */
export function rateHolds(heardAnswers: readonly HeardAnswer[], perMinute: number): Assessment {
  if (heardAnswers.length === 0) return unknown('nothing was answered')
  const limits = heardAnswers.flatMap(({ headers, at }) => readLimits(headers, at * 1000).limit ?? [])
  if (limits.length > 0) return holds(`headers say ${limits[0]} in their window, which is kept`)
  const odd = Object.entries(heardAnswers[0]?.headers ?? {}).filter(([name]) =>
    /limit|quota|remaining|throttle|allowed/.test(name),
  )
  if (odd.length === 0) return unknown(`no header reports a limit; pitlake sends ${perMinute} a minute`)
  const [most] = odd
    .map(([, value]) => Number(/^\d{1,7}/.exec(value)?.[0]))
    .filter((n) => n > 0)
    .toSorted((a, b) => b - a)
  const evidence = `headers that pitlake cannot read: ${named(odd)}`
  if (most === undefined) return speaksAgainst(evidence)
  return most >= perMinute
    ? holds(`${evidence}; pitlake sends ${perMinute} a minute`)
    : speaksAgainst(evidence, { metrics: { requests_per_minute: most } })
}

/** Judges whether the reset of a limit can be read, and how it is spelt. */
export function resetHolds(heardAnswers: readonly HeardAnswer[]): Assessment {
  for (const { headers, at } of heardAnswers) {
    const found = Object.entries(headers).find(([name]) => /limit.*reset|^retry-after$/.test(name))
    const { resetMs, retryAfterMs } = readLimits(headers, at * 1000)
    const wait = resetMs ?? retryAfterMs
    if (found !== undefined)
      return wait === null
        ? speaksAgainst(`pitlake cannot read ${named([found])}`)
        : holds(`${named([found])} is in ${Math.round(wait / 1000)} s`)
  }
  return unknown('no answer carries one')
}

/** Judges whether errors have an error status; `heard` in any order. */
export function errorsHold(heard: readonly HeardAnswer[]): Assessment {
  const hidden = heard.find(({ outcome, body }) => outcome.kind === 'body' && isObject(body) && 'error' in body)
  if (hidden !== undefined) return speaksAgainst('an error came with the status 200')
  const names = heard.flatMap(({ outcome }) =>
    'words' in outcome ? [`${'status' in outcome ? outcome.status : ''} ${outcome.words}`] : [],
  )
  return names[0] === undefined ? unknown('nothing was refused') : holds(names[0].slice(0, 120))
}

const pointKeys = ['t', 'v', 'o', 'computed_at']

function furtherKeys(points: readonly Point[]): string[] {
  return [...new Set(points.flatMap((point) => Object.keys(point)))].filter((key) => !pointKeys.includes(key))
}

function bodyHolds(days: HeardAnswer | null): Assessment {
  if (days === null || days.outcome.kind !== 'body') return unknown(whyNot(days))
  const points = pointsIn(days.body)
  if (points === null)
    return speaksAgainst(
      isObject(days.body) ? `an object with ${Object.keys(days.body).join(', ')}` : 'no array of objects',
    )
  if (points.length === 0) return unknown('no points came')
  const further = furtherKeys(points)
  const keys = [...new Set(points.flatMap((point) => Object.keys(point)))]
  if (!keys.includes('t')) return speaksAgainst(`points without \`t\`: ${keys.join(', ')}`)
  if (points.some(({ t }) => typeof t !== 'number' || !Number.isInteger(t) || t > 1e11))
    return speaksAgainst('a `t` that is no Unix time in seconds')
  if (!keys.includes('v') && !keys.includes('o'))
    return speaksAgainst(
      `a plain value under ${further.join(', ')} instead of \`v\`: it is kept as a component, \`v\` stays empty`,
    )
  return holds(`${points.length} points with ${keys.join(', ')}`)
}

function computedHolds(points: readonly Point[], path: string): Assessment {
  const computedTimes = points
    .map((point) => point['computed_at'])
    .filter((value) => value !== undefined && value !== null)
  if (computedTimes.every(isComputed) && computedTimes.length > 0)
    return holds(`Unix seconds, as ${formatInstant(Math.floor(Number(computedTimes[0])))}`)
  if (computedTimes.length > 0)
    return speaksAgainst(
      `it is ${JSON.stringify(computedTimes.find((value) => !isComputed(value)))}, no Unix time in seconds`,
    )
  const like = furtherKeys(points).filter((key) =>
    points.every(({ [key]: value, ...point }) => isComputed(value) && value >= timeOf(point)),
  )
  return like.length > 0
    ? speaksAgainst(
        `points have none, but \`${like.join('`, `')}\` looks like one and is not read: rules date the points`,
      )
    : unknown(`points of ${path} have none: rules date them`)
}

function valuesHold({ hours }: MetricsSeen): Assessment {
  return withPoints(hours, (points) => {
    const places = new Set(
      points.flatMap((point) =>
        Object.keys(point).filter((key) => typeof point[key] === 'object' && point[key] !== null),
      ),
    )
    const [place] = places
    if (place === undefined) return unknown('no nested value came')
    return holds(place === 'o' || place === 'v' ? `under \`${place}\`` : `beside \`t\`, as ${[...places].join(', ')}`)
  })
}

function assetsHold(assets: HeardAnswer | null): Assessment {
  if (assets === null) return unknown(whyNot(assets))
  if (assets.outcome.kind !== 'body')
    return assets.outcome.kind === 'gone' ? holds('there is none (404): name the assets') : unknown(whyNot(assets))
  const read = readAssets(text(assets))
  if (read === null) return speaksAgainst("pitlake cannot read it: name the assets instead of '*'")
  const rows: unknown = Array.isArray(assets.body) ? assets.body[0] : null
  const form =
    rows === null
      ? 'under a key'
      : isObject(rows)
        ? 'id' in rows
          ? 'objects with id'
          : 'objects with symbol'
        : 'texts'
  return holds(`${read.length} assets, ${form}`)
}
