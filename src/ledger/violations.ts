import { parseSeriesId } from '../catalog/series.ts'
import { globTest } from '../catalog/globs.ts'
import { usage } from '../errors.ts'
import { commit, type RewriteDeps } from './commit.ts'
import { type Accepted, type CoverageRow, sha256, violationId } from './entry.ts'
import type { Instant, Micros } from '../time.ts'
import { heldCoverage, heldViolations } from './held.ts'
import type { Ledger } from './ledger.ts'
import { providerOf } from './provider.ts'
import { isOfHeld, readRefusal, standingWords, withdrawnBegin } from './refusals.ts'
import { rowOf } from './row.ts'
import { orNull, real, text } from './shape.ts'

/** Something upstream that a person has to look at: a value that differs, or a series with points that is refused. */
export interface Listed {
  readonly id: string
  readonly series: string
  readonly t: number
  /** As in the view `violations`, or `refused`. */
  readonly kind: string
  readonly stored: string | null
  readonly offered: string | null
  readonly accepted_at: Micros | null
  readonly why: string | null
}

/** Which of them are meant; null for all. */
export interface ListedFilter {
  readonly paths: readonly string[] | null
  readonly assets: readonly string[] | null
}

/** Everything that differs upstream, in the order of its commits, then what is refused. */
export function listViolations(ledger: Ledger, { paths, assets }: ListedFilter): Listed[] {
  const path = tests(paths)
  const asset = tests(assets)
  const found = heldViolations(ledger).map((held): Listed => {
    const { series, t, kind, stored, offered, accepted_at, why } = held
    return { id: violationId(held), series, t, kind, stored, offered, accepted_at, why }
  })
  return [...found, ...refusals(ledger).map(({ listed }) => listed)].filter(({ series }) => {
    const known = parseSeriesId(series)
    return path(known?.metric ?? series) && asset(known?.asset ?? '')
  })
}

function tests(globs: readonly string[] | null): (text: string) => boolean {
  if (globs === null) return () => true
  const all = globs.map(globTest)
  return (text) => all.some((test) => test(text))
}

/** One refusal of a series that has points, with the windows that it is about. */
export interface Refused {
  readonly listed: Listed
  readonly rows: readonly CoverageRow[]
  /** Since when it is refused, and the provider's words. */
  readonly since: Instant
  readonly words: string
  readonly withdrawn: boolean
}

/**
 * Series that have points and are refused, or were for so long that nobody waits for them any more; all windows of one
 * refusal are one thing to look at, under one id in both.
 */
export function refusals(ledger: Ledger): Refused[] {
  const noted = ledger.statement('SELECT at AS accepted_at, why FROM accepted WHERE id = ?')
  return [...heldCoverage(ledger)].flatMap(([series, rows]) => {
    const refused = rows.filter(
      ({ state, reason }) => (state === 'failed' || state === 'unsupported') && isOfHeld(reason),
    )
    return [...Map.groupBy(refused, ({ reason }) => standingWords(reason ?? ''))].map(([offered, own]): Refused => {
      const t = Math.min(...own.map(({ since }) => since))
      const id = sha256(JSON.stringify([series, 'refused', offered])).slice(0, 12)
      const { accepted_at, why } = notedOf(noted.get(id) ?? { accepted_at: null, why: null })
      const { since, words } = readRefusal(offered) ?? { since: null, words: offered }
      const withdrawn = own.every(({ state }) => state === 'unsupported')
      const listed = { id, series, t, kind: 'refused', stored: null, offered, accepted_at, why }
      return { listed, rows: own, since: since ?? t, words, withdrawn }
    })
  })
}

const notedOf = rowOf({ accepted_at: orNull(real), why: orNull(text) })

/** What else a person may take note of: where the state keeps that, and since when somebody has; null: nobody yet. */
export interface Elsewhere {
  readonly state: string
  readonly accepted_at: Micros | null
}

/** What came of accepting. */
export interface Acceptance {
  readonly version: number
  readonly made: boolean
  readonly accepted: readonly string[]
  /** Those of the named that somebody had accepted before. */
  readonly known: readonly string[]
}

/**
 * Takes note of what differs upstream, as one dated version with the reason given: no data change. A refused series is
 * `unsupported: withdrawn` from then on. Of what is kept elsewhere the state takes note.
 */
export async function acceptViolations(
  ledger: Ledger,
  { ids, why }: { readonly ids: readonly string[]; readonly why: string },
  deps: RewriteDeps,
  elsewhere: ReadonlyMap<string, Elsewhere> = new Map(),
): Promise<Acceptance> {
  let accepted: string[] = []
  let known: string[] = []
  const version = await commit(
    ledger,
    async (ticket) => {
      const all = new Map(listViolations(ledger, { paths: null, assets: null }).map((one) => [one.id, one]))
      const named = [...new Set(ids)].map((id) => ({
        id,
        accepted_at: (all.get(id) ?? elsewhere.get(id) ?? unknown(id)).accepted_at,
      }))
      const fresh = named.filter(({ accepted_at }) => accepted_at === null)
      accepted = fresh.map(({ id }) => id)
      known = named.filter(({ accepted_at }) => accepted_at !== null).map(({ id }) => id)
      if (fresh.length === 0) return null
      const notes = fresh.flatMap(({ id }): Accepted[] => {
        const one = all.get(id)
        return one ? [{ id, series: one.series, t: one.t, kind: one.kind, offered: one.offered, why }] : []
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
  return { version: version.version, made: version.made, accepted, known }
}

function unknown(id: string): never {
  throw usage(`violations accept ${id}`, {
    expected: 'the id of a violation',
    got: 'one that is not on record',
    next: 'see pitlake violations list',
  })
}
