import type { Catalogue } from '../../catalog/catalogue.ts'
import type { Selection } from '../../catalog/series.ts'
import { withCleanup } from '../../base/cleanup.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { isObject, jsonOf } from '../../base/json.ts'
import { commit, type CommitDeps, type Version } from '../../lake/ledger/commit.ts'
import type { Connection } from '../http/connection.ts'
import { withoutPoints } from '../../lake/ledger/draft.ts'
import { canonical, type RequestRow } from '../../lake/ledger/entry.ts'
import { storedPassing, storedSeries, liveFiles } from '../../lake/ledger/index-queries.ts'
import type { Run } from '../../lake/ledger/job.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import type { AskOne } from '../http/request-rows.ts'
import { describeOutcome, type Outcome } from '../http/outcome.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { realDisk } from '../../lake/store/disk.ts'
import { Engine, quote, quotePath, quotePaths } from '../../lake/store/engine.ts'
import { readText, sizeOf, writePrivate } from '../../lake/store/files.ts'
import { assetsFile, inLake, versionedName } from '../../lake/store/layout.ts'
import { suggestion } from '../../base/suggestion.ts'
import { day, formatDate, type Micros } from '../../base/time.ts'
import { assetsUrl, metadataUrl } from './api.ts'

/** The dependencies of requesting and storing the listing of assets. */
interface Listing {
  readonly run: Pick<Run, 'id' | 'ledger'>
  readonly input: { readonly catalogue: Catalogue; readonly providerMoved: boolean }
  readonly deps: CommitDeps
  readonly connection: Connection
  readonly engine: () => Promise<Engine>
  /** Sends a request under a limit of its own; its refusals stop nothing else. */
  readonly ask: AskOne
}

const fact = 'metrics.assets'
const largestListing = 100_000_000

/** Whether the listing was last requested more than a day ago, or never. */
export function isListingDue(ledger: Ledger, nowMicros: number): boolean {
  const lastRequest = storedPassing(ledger, fact)
  return lastRequest === undefined || Math.abs(nowMicros - lastRequest.at) >= day * 1_000_000
}

/** The answer to a request for the listing of assets. */
export interface ListingAnswer {
  readonly outcome: Outcome
  /** Assets that the listing names; null if there was none or it could not be read. */
  readonly assets: number | null
  /** Assets that are new or changed, and stored. */
  readonly fresh: number
  /** The commit that recorded the request; null if there was no answer to record. */
  readonly version: Version | null
}

/** Requests the listing of assets once, and stores new or changed assets; a missing answer is not a failure. */
export async function refreshAssets(listing: Listing): Promise<ListingAnswer> {
  const { run, input, deps, connection, engine, ask } = listing
  const { ledger } = run
  const { spool } = connection
  const url = assetsUrl(connection.base, input.catalogue.wire)
  const { outcome, row } = await ask({ id: `${run.id}-assets`, url, file: spool.file('assets.json') }, { credits: 0 })
  if (outcome.kind === 'again' || outcome.kind === 'stopped' || outcome.kind === 'parked')
    return { outcome, assets: null, fresh: 0, version: null }
  const provider = connection.provider()
  if (provider === null) return { outcome, assets: null, fresh: 0, version: null }
  const listed = outcome.kind === 'body' ? await bodyOf(outcome.file, input.catalogue.chains) : null
  const described = listed === null ? null : await askDescribed(listing, listed)
  const assets = listed?.map((asset) => described?.assets.get(asset.id) ?? asset) ?? null
  const listingFacts = { outcome: assets === null ? describeOutcome(outcome) : 'read', assets: assets?.length ?? null }
  let fresh = 0
  const version = await commit(
    ledger,
    async (ticket) => {
      const rows = assets === null || assets.length === 0 ? [] : await freshRows(ledger, await engine(), assets)
      fresh = rows.length
      const name = versionedName(ticket.version, run.id)
      const temporary = `assets-${name}.parquet`
      if (fresh > 0) await writeAssets(await engine(), rows, spool.file(temporary), ticket.committed_at)
      const about = { ...withoutPoints, table: 'metric_assets', label: '', meta: {} }
      const staged = { ...about, temporary: spool.path(temporary), path: assetsFile(name) }
      return {
        job: 'fetch',
        run: run.id,
        provider,
        providerMoved: input.providerMoved,
        add: fresh > 0 ? [{ ...staged, rows: fresh }] : [],
        requests: [{ ...row, points: listingFacts.assets }, ...(described === null ? [] : [described.row])],
        passing: { [fact]: listingFacts },
      }
    },
    deps,
  )
  return { outcome, assets: listingFacts.assets, fresh, version }
}

/** The provider's description of its assets, and the request for it as the ledger records it. */
interface DescribedAssets {
  /** Assets by id; empty if the provider has no readable description. */
  readonly assets: ReadonlyMap<string, ListedAsset>
  readonly row: RequestRow
}

/**
 * Requests the description of assets if the listing has no contracts; null if there is nothing to request, or no
 * answer.
 */
async function askDescribed(
  { run, input, connection, ask }: Pick<Listing, 'run' | 'input' | 'connection' | 'ask'>,
  listed: readonly ListedAsset[],
): Promise<DescribedAssets | null> {
  const { wire, chains } = input.catalogue
  const address = wire.metadata?.assets
  if (address === undefined || listed.some(({ addresses }) => addresses !== null)) return null
  const url = metadataUrl(connection.base, address, '')
  const file = connection.spool.file('described-assets.json')
  const { outcome, row } = await ask({ id: `${run.id}-described`, url, file, bucket: 'metadata' }, { credits: 0 })
  if (outcome.kind === 'again' || outcome.kind === 'stopped' || outcome.kind === 'parked') return null
  const assets = outcome.kind === 'body' ? ((await bodyOf(outcome.file, chains)) ?? []) : []
  return { assets: new Map(assets.map((asset) => [asset.id, asset])), row }
}

async function bodyOf(file: string, chains: Chains): Promise<ListedAsset[] | null> {
  return (await sizeOf(file)) > largestListing ? null : readAssets(await readText(file), chains)
}

async function freshRows(ledger: Ledger, engine: Engine, assets: readonly ListedAsset[]): Promise<ListedAsset[]> {
  const assetsOfSeries = await loadAssets(ledger, engine)
  return assets.filter(({ id, record }) => assetsOfSeries.get(id) !== canonical(record))
}

/** Whether a selection leaves its assets to the listing. */
export function wantsListing(selections: readonly Selection[]): boolean {
  return selections.some(({ assets }) => assets.includes('*'))
}

/** Replaces every `'*'` among the assets of selections by the names in the stored listing. */
export async function withListedAssets(selections: readonly Selection[], ledger: Ledger | null) {
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

/** Returns null if the work fails because a selection of all assets needs a listing that is not available. */
export async function unlessUnlisted<T>(work: Promise<T>): Promise<T | null> {
  return await work.catch((error: unknown) => {
    if (error instanceof LakeError && error.kind === 'usage') return null
    throw error
  })
}

/** An asset that the provider's listing lacks, and the listed one that was probably meant. */
export interface MistypedAsset {
  /** The asset as it was typed. */
  readonly asset: string
  /** The asset that the provider lists. */
  readonly near: string
}

/**
 * Finds the assets without points in the lake that are missing from the stored listing of the provider's assets but
 * similar to an id in it, or equal to the name of one: `BITCOIN` is `BTC`.
 */
export async function mistypedAssets(ledger: Ledger, assets: readonly string[]): Promise<MistypedAsset[]> {
  const storedAssets = new Set(
    [...storedSeries(ledger).values()].flatMap((series) => (series.first_t === null ? [] : [series.asset])),
  )
  const strange = assets.filter((id) => id !== '*' && !storedAssets.has(id))
  if (storedPassing(ledger, fact) === undefined || strange.length === 0) return []
  using engine = await Engine.open()
  const records = await loadAssets(ledger, engine)
  const ids = [...records.keys()]
  const idsByName = new Map(
    [...records].map(([id, record]) => [String((JSON.parse(record) as { name?: unknown }).name).toLowerCase(), id]),
  )
  return strange.flatMap((asset) => {
    const near = records.has(asset) ? undefined : (idsByName.get(asset.toLowerCase()) ?? suggestion(asset, ids))
    return near === undefined ? [] : [{ asset, near }]
  })
}

/** Refuses a probable typing error among assets, which is not requested. */
export async function refuseSlips(root: string, assets: readonly string[]): Promise<void> {
  if (!isBegun(root)) return
  using ledger = await Ledger.openToRead(root)
  const [slip] = await mistypedAssets(ledger, assets)
  if (slip === undefined) return
  const at = storedPassing(ledger, fact)?.at ?? 0
  throw usage('--assets', {
    expected: `an asset of the provider's listing as of ${formatDate(at / 1_000_000)}`,
    got: slip.asset,
    next: `did you mean \`${slip.near}\`? What is newer is brought by \`select:\` in pitlake.yaml`,
  })
}

async function listedIds(ledger: Ledger): Promise<string[]> {
  using engine = await Engine.open()
  return [...(await loadAssets(ledger, engine)).keys()]
}

/** Loads the newest record of each stored asset as canonical JSON text, in the order of first appearance. */
async function loadAssets(ledger: Ledger, engine: Engine): Promise<Map<string, string>> {
  const files = liveFiles(ledger, { table: 'metric_assets' }).map((file) => inLake(ledger.root, file.path))
  if (files.length === 0) return new Map()
  const rows = await engine.rows<{ id: string; record: string }>(
    `SELECT id, arg_max(record, observed_at) AS record FROM read_parquet(${quotePaths(files)}, hive_partitioning = false)
     GROUP BY id ORDER BY min(observed_at), id`,
  )
  return new Map(rows.map(({ id, record }) => [id, canonical(JSON.parse(record))]))
}

/** DuckDB's own limit of a JSON object, in bytes; it sizes buffers after it. */
const usualObject = 1 << 24

/** Writes the rows as one Parquet file, sorted by id. */
async function writeAssets(engine: Engine, rows: readonly ListedAsset[], out: string, observedAt: Micros) {
  const lines = `${out}.jsonl`
  const text = rows.map(({ id, symbol, addresses, record }) => {
    const nested = addresses === null ? null : JSON.stringify(addresses)
    return `${JSON.stringify({ id, symbol, addresses: nested, record: JSON.stringify(record) })}\n`
  })
  const longest = text.reduce((most, line) => Math.max(most, line.length), 0)
  await writePrivate(lines, text.join(''))
  const copy = async (): Promise<void> => {
    await engine.run(
      `COPY (
         SELECT id, symbol, addresses, record, make_timestamptz(${observedAt}) AS observed_at
         FROM read_json(${quotePath(lines)}, format = 'newline_delimited', hive_partitioning = false,
           maximum_object_size = ${Math.max(usualObject, 4 * longest)},
           columns = {id: 'VARCHAR', symbol: 'VARCHAR', addresses: 'VARCHAR', record: 'VARCHAR'})
         ORDER BY id
       ) TO ${quote(out)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2)`,
    )
  }
  await withCleanup(copy, async () => await realDisk.remove(lines))
}

/** Registry chain ids by the metrics API's name of a chain, in lower case. */
type Chains = Catalogue['chains']

/** One asset of the metrics API's listing. */
interface ListedAsset {
  readonly id: string
  readonly symbol: string | null
  /** Contracts of the asset; null if the listing has none. */
  readonly addresses: readonly { readonly chain_id: string; readonly address: string }[] | null
  /** The row as it was listed. */
  readonly record: unknown
}

/**
 * Reads a listing of assets: an array of ids, of objects with `id` or `symbol`, or such an array under `data` or
 * `assets`. Rows without a name are skipped, the first of equal ids counts; null for any other text. Contracts get the
 * registry's id of their chain if `chains` has it, otherwise the name in the listing.
 */
export function readAssets(text: string, chains: Chains = new Map()): ListedAsset[] | null {
  const list = listIn(jsonOf(text))
  if (list === null) return null
  const assets = new Map<string, ListedAsset>()
  for (const row of list) {
    const asset = assetOf(row, chains)
    if (asset !== null && !assets.has(asset.id)) assets.set(asset.id, asset)
  }
  return list.length > 0 && assets.size === 0 ? null : [...assets.values()]
}

function listIn(value: unknown): readonly unknown[] | null {
  const places = isObject(value) ? [value['data'], value['assets']] : [value]
  return places.find((place): place is unknown[] => Array.isArray(place)) ?? null
}

function assetOf(row: unknown, chains: Chains): ListedAsset | null {
  if (typeof row === 'string' || typeof row === 'number') {
    const id = String(row)
    return isId(id) ? { id, symbol: null, addresses: null, record: row } : null
  }
  if (!isObject(row)) return null
  const symbol = textOf(row['symbol'])
  const id = textOf(row['id']) ?? symbol
  return id === null || !isId(id) ? null : { id, symbol, addresses: addressesOf(row, chains), record: row }
}

const isId = (text: string): boolean => text !== '' && text !== '*' && text.isWellFormed()

function addressesOf(row: Readonly<Record<string, unknown>>, chains: Chains): ListedAsset['addresses'] {
  const ownContract = contractOf(row, null)
  const listed = ['addresses', 'contracts', 'platforms', 'blockchains'].flatMap((key) => contractsIn(row[key]))
  const all = [...(ownContract === null ? [] : [ownContract]), ...listed]
  const named = all.map(({ chain_id, address }) => ({
    chain_id: chains.get(chain_id.toLowerCase()) ?? chain_id,
    address,
  }))
  return named.length === 0 ? null : named
}

/** Reads contracts from a list, or from an object that maps chains to addresses. */
function contractsIn(value: unknown): { chain_id: string; address: string }[] {
  if (Array.isArray(value)) return value.map((row) => contractOf(row, null)).filter((row) => row !== null)
  if (!isObject(value)) return []
  return Object.entries(value)
    .map(([chain, inner]) => contractOf(isObject(inner) ? inner : { address: inner }, chain))
    .filter((row) => row !== null)
}

function contractOf(row: unknown, key: string | null): { chain_id: string; address: string } | null {
  if (!isObject(row)) return null
  const chain =
    textOf(row['chain_id']) ?? textOf(row['chain']) ?? textOf(row['network']) ?? textOf(row['blockchain']) ?? key
  const address = textOf(row['address']) ?? textOf(row['contract_address'])
  return chain === null || address === null ? null : { chain_id: chain, address }
}

function textOf(value: unknown): string | null {
  if (typeof value === 'string' && value !== '') return value
  return typeof value === 'number' ? String(value) : null
}
