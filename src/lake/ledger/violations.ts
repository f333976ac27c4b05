import { parseSeriesId } from '../../catalog/series.ts'
import { globTest } from '../../catalog/globs.ts'
import { usage } from '../../base/errors.ts'
import { commit, type RewriteDeps } from './commit.ts'
import { type Accepted, type CoverageRow, sha256, violationId } from './entry.ts'
import type { Micros } from '../../base/time.ts'
import { loadCoverage, storedViolations, type StoredViolation } from './index-queries.ts'
import type { Ledger } from './ledger.ts'
import { providerOf } from './provider.ts'
import { isOfHeld, readRefusal, standingWords, withdrawnBegin } from './refusals.ts'
import { rowOf } from './index-rows.ts'
import { orNull, real, text } from '../../base/value-checks.ts'

/** Something upstream that a person has to look at: a value that differs, an incident, or a series that is refused. */
export type ListedViolation = {
  /** Name of the violation, the refusal or the incident, for `violations acknowledge`. */
  readonly id: string
  /** Id of the series; of an incident the first one. */
  readonly series: string
  /** The point's `t`, or the start of the refused range; seconds. */
  readonly t: number
  /** Kind as in the view `violations`, or `refused`, or `incident`. */
  readonly kind: string
  /** The stored value as JSON text; null for an incident, a refusal, and if none is named. */
  readonly stored: string | null
  /** The provider's value as JSON text, or its words of refusal; null for an incident, and if it sent none. */
  readonly offered: string | null
  /** Time at which it was first seen, microseconds. */
  readonly found_at: Micros
  /** Time at which a person acknowledged it, microseconds; null if nobody has. */
  readonly acknowledged_at: Micros | null
  /** The reason that the person gave; null if nobody has acknowledged it. */
  readonly why: string | null
  /** Time at which it was reverted upstream (answers no longer show it), microseconds; null while they still do. */
  readonly reverted_at: Micros | null
  /** Facts of an incident; null for a single violation or refusal. */
  readonly incident: IncidentFacts | null
}

/** Many differences of one day. */
export type IncidentFacts = {
  readonly api: 'metrics'
  /** Paths of its series, sorted. */
  readonly endpoints: readonly string[]
  /** Ids of its series. */
  readonly series: readonly string[]
  /** Points that differed when it was found. */
  readonly points: number
  /** Points that the last answers still showed. */
  readonly open: number
  /** Points by kind of violation when it was found. */
  readonly counts: Readonly<Record<string, number>>
}

/**
 * A filter of violations; null for all. An incident matches if one of its series does, with `whole` if all of them do.
 */
interface ListedFilter {
  readonly paths: readonly string[] | null
  readonly assets: readonly string[] | null
  readonly whole?: boolean
}

/** Lists everything that differs upstream, in the order of its commits, then the refused series. */
export function listViolations(ledger: Ledger, { paths, assets, whole = false }: ListedFilter): ListedViolation[] {
  const path = tests(paths)
  const asset = tests(assets)
  const fits = (series: string): boolean => {
    const parsedId = parseSeriesId(series)
    return path(parsedId?.metric ?? series) && asset(parsedId?.asset ?? '')
  }
  const found = [...Map.groupBy(storedViolations(ledger), unitOf).values()].map(listed)
  return [...found, ...refusals(ledger).map((refusal) => refusal.listed)].filter(({ series, incident }) => {
    if (incident === null) return fits(series)
    return whole ? incident.series.every(fits) : incident.series.some(fits)
  })
}

/** The end of a violation: acknowledged by a person or reverted upstream; both null if neither. */
type ViolationEnd = Pick<ListedViolation, 'acknowledged_at' | 'reverted_at'>

/** Whether a violation is open: neither acknowledged nor reverted upstream. */
export function isOpenViolation({ acknowledged_at, reverted_at }: ViolationEnd): boolean {
  return acknowledged_at === null && reverted_at === null
}

const unitOf = (violation: StoredViolation): string => violation.incident ?? violationId(violation)

function listed(rows: readonly StoredViolation[]): ListedViolation {
  const [first] = rows as [StoredViolation]
  const {
    series,
    t,
    kind,
    stored,
    offered,
    offered_at: found_at,
    acknowledged_at,
    why,
    reverted_at,
    incident: id,
  } = first
  const alone = {
    id: violationId(first),
    series,
    t,
    kind,
    stored,
    offered,
    found_at,
    acknowledged_at,
    why,
    reverted_at,
  }
  if (id === null) return { ...alone, incident: null }
  const open = rows.filter((row) => row.reverted_at === null)
  const passed = open.length > 0 ? null : Math.max(...rows.map((row) => row.reverted_at ?? 0))
  const many = { id, kind: 'incident', stored: null, offered: null, reverted_at: passed }
  return { ...alone, ...many, incident: factsOf(rows, open) }
}

/** Counts the differences of an incident; `open` are the rows that the last answers still showed. */
function factsOf(rows: readonly StoredViolation[], open: readonly StoredViolation[]): IncidentFacts {
  const began = new Map<number, number>()
  for (const { offered_at, added_version } of rows)
    began.set(offered_at, Math.min(began.get(offered_at) ?? Infinity, added_version))
  // The remaining parts of a window add no further points.
  const first = rows.filter(({ offered_at, added_version }) => began.get(offered_at) === added_version)
  const counts: Record<string, number> = {}
  for (const { kind, points } of first) counts[kind] = (counts[kind] ?? 0) + points
  const sum = (some: readonly StoredViolation[]): number => some.reduce((total, { points }) => total + points, 0)
  const series = [...new Set(rows.map((row) => row.series))]
  const endpoints = [...new Set(series.map((seriesId) => parseSeriesId(seriesId)?.metric ?? seriesId))].toSorted()
  return { api: 'metrics' as const, endpoints, series, points: sum(first), open: sum(open), counts }
}

function tests(globs: readonly string[] | null): (text: string) => boolean {
  if (globs === null) return () => true
  const all = globs.map(globTest)
  return (text) => all.some((test) => test(text))
}

/** A refusal of a series that has points; all its windows are one thing to look at. */
export interface ListedRefusal {
  readonly listed: ListedViolation
  /** The coverage ranges that record it. */
  readonly rows: readonly CoverageRow[]
  /** Start of the refusals of the series, seconds. */
  readonly since: number
  /** The status and the words of the provider. */
  readonly words: string
  /** Whether pitlake no longer waits for the series. */
  readonly withdrawn: boolean
}

/** Lists the series that have points and are refused, those that pitlake no longer waits for included. */
export function refusals(ledger: Ledger): ListedRefusal[] {
  const noted = ledger.statement('SELECT at AS acknowledged_at, why FROM accepted WHERE id = ?')
  return [...loadCoverage(ledger)].flatMap(([series, rows]) => {
    const refusedRows = rows.filter(
      ({ state, reason }) => (state === 'failed' || state === 'unsupported') && isOfHeld(reason),
    )
    return [...Map.groupBy(refusedRows, ({ reason }) => standingWords(reason ?? ''))].map(([offered, rowsOfReason]) => {
      const t = Math.min(...rowsOfReason.map(({ since }) => since))
      const id = sha256(JSON.stringify([series, 'refused', offered])).slice(0, 12)
      const { acknowledged_at, why } = notedOf(noted.get(id) ?? { acknowledged_at: null, why: null })
      const { since, words } = readRefusal(offered) ?? { since: null, words: offered }
      const withdrawn = rowsOfReason.every(({ state }) => state === 'unsupported')
      const about = { found_at: (since ?? t) * 1_000_000, acknowledged_at, why, reverted_at: null, incident: null }
      const violation: ListedViolation = { id, series, t, kind: 'refused', stored: null, offered, ...about }
      return { listed: violation, rows: rowsOfReason, since: since ?? t, words, withdrawn }
    })
  })
}

const notedOf = rowOf({ acknowledged_at: orNull(real), why: orNull(text) })

/** Something other than a violation that a person may acknowledge, such as a finding of the registry. */
interface Elsewhere {
  /** The key of the state that records the acknowledgement. */
  readonly state: string
  /** Time at which a person acknowledged it, microseconds; null if nobody has. */
  readonly acknowledged_at: Micros | null
}

/** The result of acknowledging violations. */
export interface Acknowledgement {
  /** The newest version. */
  readonly version: number
  /** Whether a version was made. */
  readonly made: boolean
  /** Ids that were acknowledged now. */
  readonly acknowledged: readonly string[]
  /** Ids that were acknowledged before. */
  readonly known: readonly string[]
}

/**
 * Acknowledges upstream differences, in one dated version with the reason given; no data change. A refused series is
 * `unsupported: withdrawn` from then on. An item of `elsewhere` is acknowledged in the state.
 */
export async function acceptViolations(
  ledger: Ledger,
  { ids, why }: { readonly ids: readonly string[]; readonly why: string },
  deps: RewriteDeps,
  elsewhere: ReadonlyMap<string, Elsewhere> = new Map(),
): Promise<Acknowledgement> {
  let accepted: string[] = []
  let acknowledgedBefore: string[] = []
  const version = await commit(
    ledger,
    async (ticket) => {
      const all = new Map(
        listViolations(ledger, { paths: null, assets: null }).map((violation) => [violation.id, violation]),
      )
      const named = [...new Set(ids)].map((id) => ({
        id,
        acknowledged_at: (all.get(id) ?? elsewhere.get(id) ?? unknown(id)).acknowledged_at,
      }))
      const fresh = named.filter(({ acknowledged_at }) => acknowledged_at === null)
      accepted = fresh.map(({ id }) => id)
      acknowledgedBefore = named.filter(({ acknowledged_at }) => acknowledged_at !== null).map(({ id }) => id)
      if (fresh.length === 0) return null
      const notes = fresh.flatMap(({ id }): Accepted[] => {
        const violation = all.get(id)
        return violation
          ? [{ id, series: violation.series, t: violation.t, kind: violation.kind, offered: violation.offered, why }]
          : []
      })
      const states = accepted.flatMap((id) => elsewhere.get(id)?.state ?? [])
      const withdrawn = refusals(ledger).filter(({ listed }) => accepted.includes(listed.id))
      return {
        job: 'accept',
        run: `accept-${ticket.version}-${deps.holder.pid}`,
        provider: providerOf(ledger),
        accepted: notes,
        state: Object.fromEntries(states.map((key) => [key, { why }])),
        coverage: withdrawn.flatMap(({ listed: { offered }, rows }) =>
          rows.map((row): CoverageRow => ({ ...row, state: 'unsupported', reason: `${withdrawnBegin}${offered}` })),
        ),
      }
    },
    deps,
  )
  return { version: version.version, made: version.made, acknowledged: accepted, known: acknowledgedBefore }
}

function unknown(id: string): never {
  throw usage(`violations acknowledge ${id}`, {
    expected: 'the id of a violation',
    got: 'one that is not on record',
    next: 'see pitlake violations list',
  })
}
