import { readFile, stat } from 'node:fs/promises'
import type { Catalogue } from '../catalog/catalogue.ts'
import type { Selection } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import type { Asker } from '../net/ask.ts'
import { readAssets } from './assets-listing.ts'
import { assetsUrl } from './api.ts'
import { clockOf, describeFailure, describeOutcome, type Outcome } from '../net/outcome.ts'
import { type AssetRow, heldAssets, writeAssets } from './assets-table.ts'
import { commit, type CommitDeps, type Version } from '../ledger/commit.ts'
import { Engine } from '../store/engine.ts'
import { canonical, type Json, type Provider, type RequestRow } from '../ledger/entry.ts'
import { heldSoft } from '../ledger/held.ts'
import { assetsFile } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Spool } from '../ledger/sweep.ts'
import { day } from '../time.ts'

/** What the listing of assets is asked and stored with. */
export interface Listing {
  readonly ledger: Ledger
  readonly engine: Engine
  readonly spool: Spool
  /** An asker of its own: the listing has its own limit, and its refusals stop nothing. */
  readonly asker: Pick<Asker, 'ask'>
  readonly run: string
  readonly base: string
  readonly catalogue: Catalogue
  /** Whose listing it is, given the sandbox's name where it told one. */
  readonly provider: (sandbox: string | null) => Provider
  readonly providerMoved: boolean
  readonly deps: CommitDeps
}

/** What came of the listing. */
export interface Listed {
  readonly outcome: Outcome
  /** How many assets it names; null where it could not be had or read. */
  readonly assets: number | null
  readonly fresh: number
  /** Null where nothing was noted at all. */
  readonly version: Version | null
}

const fact = 'metrics.assets'
const largestListing = 100_000_000

/** Whether the listing was not asked within the last day. */
export function isListingDue(ledger: Ledger, nowMicros: number): boolean {
  const asked = heldSoft(ledger, fact)
  return asked === undefined || Math.abs(nowMicros - asked.at) >= day * 1_000_000
}

/** Asks the listing of assets once and stores what is new or changed in it; no answer of it is a failure. */
export async function refreshAssets(listing: Listing): Promise<Listed> {
  const { asker, spool, run, base, catalogue } = listing
  const url = assetsUrl(base, catalogue.wire)
  const file = spool.file('assets.json')
  const outcome = await asker.ask({ id: `${run}-assets`, url, file })
  if (outcome.kind === 'again' || outcome.kind === 'stopped' || outcome.kind === 'parked')
    return { outcome, assets: null, fresh: 0, version: null }
  const assets = outcome.kind === 'body' ? await bodyOf(outcome.file) : null
  const told = { outcome: assets === null ? describeOutcome(outcome) : 'read', assets: assets?.length ?? null }
  let fresh = 0
  const version = await commit(
    listing.ledger,
    async (ticket) => {
      const rows = await freshRows(listing, assets ?? [])
      fresh = rows.length
      const name = `${String(ticket.version).padStart(10, '0')}-${run}`
      const temporary = `assets-${name}.parquet`
      if (fresh > 0) await writeAssets(listing.engine, rows, spool.file(temporary), ticket.committed_at)
      const about = { table: 'metric_assets', label: '', metric: null, interval: null, digest: null, meta: {} } as const
      const staged = { ...about, temporary: spool.path(temporary), path: assetsFile(name), min_t: null, max_t: null }
      return {
        job: 'fetch',
        run,
        provider: listing.provider('sandbox' in outcome ? outcome.sandbox : null),
        providerMoved: listing.providerMoved,
        add: fresh > 0 ? [{ ...staged, rows: fresh }] : [],
        requests: [requestRow(listing, url, outcome, told.assets)],
        soft: { [fact]: told },
      }
    },
    listing.deps,
  )
  return { outcome, assets: told.assets, fresh, version }
}

async function bodyOf(file: string): Promise<ReturnType<typeof readAssets>> {
  return (await stat(file)).size > largestListing ? null : readAssets(await readFile(file, 'utf8'))
}

async function freshRows(
  { ledger, engine }: Listing,
  assets: NonNullable<ReturnType<typeof readAssets>>,
): Promise<AssetRow[]> {
  if (assets.length === 0) return []
  const held = await heldAssets(ledger, engine)
  return assets
    .filter(({ id, record }) => held.get(id) !== canonical(record))
    .map(({ id, symbol, addresses, record }) => ({ id, symbol, addresses, record: record as Json }))
}

function requestRow(listing: Listing, url: string, outcome: Outcome, assets: number | null): RequestRow {
  return {
    id: `${listing.run}-assets`,
    run: listing.run,
    api: 'metrics',
    path: new URL(url).pathname,
    query: {},
    series: null,
    since: null,
    until: null,
    status: 'status' in outcome ? outcome.status : null,
    outcome: outcome.kind,
    points: assets,
    bytes: outcome.kind === 'body' ? outcome.bytes : null,
    credits: 0,
    attempts: 1,
    asked_at: Math.floor('at' in outcome ? outcome.at * 1000 : listing.deps.nowMicros()),
    seconds: 'requestMs' in outcome ? outcome.requestMs / 1000 : null,
    detail: outcome.kind === 'body' ? null : describeFailure(outcome),
    ...clockOf(outcome),
  }
}

/** Whether a selection leaves its assets to the listing. */
export function wantsListing(selections: readonly Selection[]): boolean {
  return selections.some(({ assets }) => assets.includes('*'))
}

/** The selections with every `'*'` among the assets replaced by what the stored listing names. */
export async function withListedAssets(
  selections: readonly Selection[],
  ledger: Ledger | null,
): Promise<readonly Selection[]> {
  if (!wantsListing(selections)) return selections
  const listed = ledger === null ? [] : await listedIds(ledger)
  if (listed.length === 0)
    throw usage("assets: '*'", {
      expected: "a stored listing of the provider's assets",
      got: 'none',
      next: 'run `pitlake fetch` with it once, or name them: --assets BTC,ETH',
    })
  return selections.map((selection) =>
    selection.assets.includes('*')
      ? { ...selection, assets: [...new Set([...selection.assets.filter((id) => id !== '*'), ...listed])] }
      : selection,
  )
}

async function listedIds(ledger: Ledger): Promise<string[]> {
  const engine = await Engine.open()
  try {
    return [...(await heldAssets(ledger, engine)).keys()]
  } finally {
    engine.close()
  }
}
