import { intervals, longestSeconds } from '../base/time.ts'
import type { Rule } from './availability.ts'
import { type Endpoint, type EndpointRules, imported } from './catalogue.ts'
import { sessionCloses, type TradingCalendar } from './sessions.ts'
import { exportRule, momentsOf, type OwnRow, type SourceMapping, unsaid } from './sources.ts'

/** Reason in place of a rule if the rows themselves date their points. */
export const statedByRows = 'each row states it'

function ruleOf({ from, seconds }: typeof unsaid, { available, available_at, vintage }: SourceMapping): Rule {
  const frame = { until: null, trust: 'provider', kind: from === 'start' ? 'start' : 'lag', seconds } as const
  if (available !== undefined && available !== exportRule)
    return { ...frame, basis: 'stated', quote: `available: ${available}`, reason: null }
  const isTold = (available ?? available_at ?? vintage) !== undefined
  return { ...frame, basis: 'assumed', quote: null, reason: isTold ? statedByRows : 'its mapping says nothing' }
}

/**
 * Builds rules for values that are known some seconds after the close of their session: one for each span in which it
 * closes at one time of day, UTC.
 */
function closeRules(rule: Rule, calendar: TradingCalendar, seconds: number): Rule[] {
  const changes = sessionCloses(calendar).filter((one, n, all) => one.seconds !== all[n - 1]?.seconds)
  return changes.map(({ seconds: close }, n): Rule => {
    return { ...rule, kind: 'start', seconds: close + seconds, until: changes[n + 1]?.day ?? null }
  })
}

function rulesFor(source: SourceMapping, part: string, sessions: Sessions): EndpointRules {
  const calendar = sessions.get(source.sessions ?? '')
  const all = intervals.map((interval) => {
    const moments = momentsOf(source, interval)
    const moment = moments.get(part) ?? moments.get('') ?? unsaid
    const rule = ruleOf(moment, source)
    const isClose = moment.from === 'close' && interval === '24h' && calendar !== undefined
    return [interval, isClose ? closeRules(rule, calendar, moment.seconds) : [rule]]
  })
  return Object.fromEntries(all) as EndpointRules
}

/** Trading calendars by the code of the exchange. */
type Sessions = ReadonlyMap<string, TradingCalendar>

/** Builds the endpoint of user data, for which pitlake contacts no provider. */
export function ownEndpoint(path: string, { mapping: source, ...row }: OwnRow, sessions: Sessions): Endpoint {
  const { intervals: storedIntervals, currencies, exchanges, networks } = row
  const early = [...new Set(storedIntervals.flatMap((interval) => [...momentsOf(source, interval).keys()]))].filter(
    Boolean,
  )
  const clocks = Object.fromEntries(early.map((part) => [pointerTo(part), rulesFor(source, part, sessions)]))
  const longest = storedIntervals.toSorted((a, b) => longestSeconds(b) - longestSeconds(a))[0] ?? null
  return {
    path,
    ask: path,
    about: row.about ?? 'own data',
    intervals: storedIntervals,
    currencies,
    exchanges,
    networks,
    since: false,
    until: false,
    format: false,
    timestampFormat: false,
    params: {},
    placeholders: [],
    defaults: {
      interval: storedIntervals.includes('24h') ? '24h' : longest,
      currency: currencies[0] ?? null,
      exchange: exchanges[0] ?? null,
      network: networks[0] ?? null,
    },
    tolerance: null,
    overlap: 'exact',
    revisable: source.revisable ?? source.vintage !== undefined,
    rules: rulesFor(source, '', sessions),
    extra: {},
    source: imported,
    ...(early.length > 0 && { clocks }),
  }
}

/** Returns the JSON pointer to a component. */
function pointerTo(component: string): string {
  return `/${component.replaceAll('~', '~0').replaceAll('/', '~1')}`
}
