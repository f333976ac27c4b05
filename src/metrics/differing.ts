import { incidentOf, isAccepted, type Standing, standingDifferences } from '../ledger/differences.ts'
import { type Passed, type Violation, violationId } from '../ledger/entry.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { ConvertResult, Heard } from '../points/conversion.ts'
import { formatMillis, type Interval, type Micros, step } from '../time.ts'
import { type Answered, type Brought, isBrought } from './answered.ts'

/** So many points of one run that differ or lack are more than single findings: an incident. */
export const manyAtOnce = 100
/** So many windows of a run at most are asked a second time before what they show is believed. */
const mostAskedTwice = 200

/** What answers show that is not on record yet, or no longer was, and what they say of what is. */
export type Differing = Readonly<ReturnType<typeof differingIn>>

/** Holds what a conversion found against what is on record. */
export function differingIn(
  ledger: Ledger,
  standing: ReadonlyMap<string, readonly Standing[]>,
  { violations, heard }: Pick<ConvertResult, 'violations' | 'heard'>,
) {
  const known = new Map([...standing].map(([series, own]) => [series, knownBy(own)]))
  const found = violations.filter((one) => known.get(one.series)?.(one) !== true)
  const { true: noted = [], false: fresh = [] } = Object.groupBy(found, (one) => `${isAccepted(ledger, one)}`)
  return {
    fresh,
    /** Those of them of which a person took note while they were open. */
    noted,
    heard,
  }
}

/** The differences on record of these series that the last answer showed. */
export function standingBySeries(ledger: Ledger, ids: readonly string[]): Map<string, Standing[]> {
  return Map.groupBy(standingDifferences(ledger, ids), ({ series }) => series)
}

function knownBy(standing: readonly Standing[]): (one: Violation) => boolean {
  const points = new Set(standing.filter(({ until }) => until === undefined).map(violationId))
  const windows = standing.filter(({ until }) => until !== undefined)
  return (one) =>
    points.has(violationId(one)) ||
    (one.kind === 'vanished' && windows.some(({ t, until = t }) => one.t >= t && one.t < until))
}

/** The answers that are not believed yet: of a run in which very much differed those that were asked only once. */
export function doubted(
  answers: readonly Answered[],
  { fresh }: Differing,
  { recorded, twice }: { readonly recorded: number; readonly twice: number },
): Brought[] {
  if (twice === 0 && fresh.length + recorded <= manyAtOnce) return []
  const differing = new Set(fresh.map(({ request }) => request))
  return answers
    .filter(isBrought)
    .filter(({ request, again }) => !again && differing.has(request.id))
    .slice(0, Math.max(0, mostAskedTwice - twice))
}

/** Circumstances of a judgement: `recorded` is how many the run put on record before. */
interface Judging {
  readonly recorded: number
  readonly at: Micros
  readonly intervalOf: (request: string | null) => Interval
}

/** What is put on record of it: single findings, or, where there are many at once, an incident of the day. */
export function judge(ledger: Ledger, { fresh, noted, heard }: Differing, { recorded, at, intervalOf }: Judging) {
  const about = [...Map.groupBy(heard, ({ standing }) => standing)]
  const over = about.filter(([, points]) => points.some(({ shown }) => shown === false))
  const seen = about.flatMap(([one, points]) => (points.some(({ shown }) => shown === true) ? [one] : []))
  const open = seen.filter(({ accepted }) => accepted === null)
  const many = fresh.length + recorded > manyAtOnce
  const incident = many && fresh.length > 0 ? [incidentOf(ledger, 'metrics', formatMillis(at).slice(0, 10))] : []
  const alone = many ? [] : fresh
  const parts = incident.flatMap((id) => inWindows(fresh, intervalOf).map((one) => ({ ...one, incident: id })))
  return {
    violations: [...noted, ...alone, ...parts, ...over.flatMap(([one, points]) => leftOf(one, points))],
    passed: passedOf(
      ledger,
      over.map(([one]) => one),
    ),
    seen: {
      violations: [...alone, ...open.filter((one) => one.incident === undefined)],
      incidents: [...new Set([...open.flatMap((one) => one.incident ?? []), ...incident])],
      accepted: [...noted.map(violationId), ...seen.flatMap(({ accepted }) => accepted ?? [])],
      recorded: fresh.length,
    },
  }
}

/** What of a window is still missing, with the instant at which it was seen first. */
function leftOf(one: Standing, points: readonly Heard[]): Violation[] {
  if (one.until === undefined) return []
  const left: Violation[] = []
  let run: Heard[] = []
  const close = (until: number): void => {
    const [first] = run
    if (first) left.push({ ...one, t: first.t, until, points: run.length })
    run = []
  }
  for (const point of points) {
    if (point.shown === false) close(point.t)
    else run.push(point)
  }
  close(one.until)
  return left
}

/** What passed, as short as it can be said: where nothing of an incident is open any more in a series, that. */
function passedOf(ledger: Ledger, over: readonly Standing[]): Passed[] {
  const groups = Map.groupBy(over, ({ series, incident }) => JSON.stringify([series, incident]))
  return [...groups.values()].map((group): Passed => {
    const [{ series, incident }] = group as [Standing]
    const own = standingDifferences(ledger, [series]).filter((one) => one.incident === incident)
    if (incident !== undefined && own.length === group.length) return { series, incident }
    const differences = group.map(({ t, kind, offered, until }) => ({
      t,
      kind,
      offered,
      ...(until !== undefined && { until }),
    }))
    return { series, ...(incident !== undefined && { incident }), differences }
  })
}

/** Points that an answer lacked as windows: consecutive ones together. */
function inWindows(found: readonly Violation[], intervalOf: Judging['intervalOf']): Violation[] {
  const lacking = found.filter(({ kind }) => kind === 'vanished')
  const windows: Violation[] = []
  for (const group of Map.groupBy(lacking, ({ series }) => series).values()) {
    let last: Violation | undefined
    for (const one of group.toSorted((a, b) => a.t - b.t)) {
      const until = step(one.t, intervalOf(one.request), 1)
      if (last !== undefined && last.until !== undefined && one.t < last.until) continue
      if (last?.until === one.t) windows.pop()
      last =
        last?.until === one.t
          ? { ...last, until, points: (last.points ?? 0) + 1 }
          : { ...one, stored: null, stored_at: null, until, points: 1 }
      windows.push(last)
    }
  }
  return [...windows, ...found.filter(({ kind }) => kind !== 'vanished')]
}
