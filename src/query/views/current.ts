import type { Catalogue } from '../../catalog/catalogue.ts'
import { type DerivedThing, type Lag, lagOf, runsMark } from '../../lake/ledger/derived.ts'
import { listJournal } from '../../lake/ledger/journal.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { isWritable, statOf } from '../../lake/store/disk.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import { textOf } from '../../lake/store/files.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import { isFree } from '../../lake/store/lock.ts'
import type { BuiltViews, ViewsBuild } from './build.ts'
import { catalogueDigest, type Manifest, readManifest, templatesDigest } from './manifest.ts'

/*
 * The law of what is derived, for views: every command that may commit ends with `bringViewsForward`, and whoever reads
 * asks `lagOfViews`.
 */

/**
 * Measures how far the views in a folder are behind its journal; null if they are current, or there is no version.
 * Costs a listing of the journal and a look at the manifest. The program that made them counts if `program` is named.
 */
export async function lagOfViews(root: string, program: string | null = null): Promise<Lag | null> {
  // Listed first: a version that comes meanwhile, with its views, is then no lag.
  const { newest } = await listJournal(root)
  if (newest === 0) return null
  const manifest = await readManifest(root, [])
  const version = manifest?.version ?? (await scriptVersion(root))
  return lagOf(viewsOf(version, manifest?.program ?? null), { newest, program })
}

/** Describes the views for a lag: what they are called, their version and maker, and the command that rebuilds them. */
function viewsOf(version: number | null, program: string | null): DerivedThing {
  return { name: 'these views', version, program, remedy: 'pitlake views' }
}

/**
 * Reads the version that the first line of `lake.sql` names: in a folder that cannot be written there may be no
 * manifest.
 */
async function scriptVersion(root: string): Promise<number | null> {
  const text = await textOf(inLake(root, places.script))
  const named = / as of version (\d+):/.exec(text?.slice(0, 8192).split('\n')[0] ?? '')?.[1]
  return named === undefined ? null : Number(named)
}

/** Leaves the lake in a folder with current views. */
export async function bringViewsForward(root: string, making: ViewsBuild): Promise<void> {
  using ledger = await Ledger.open(root)
  await makeCurrent(ledger, making)
}

/**
 * Leaves a lake with views of its newest version, made by this program with this catalogue; makes them only where they
 * are not that.
 */
async function makeCurrent(ledger: Ledger, making: ViewsBuild): Promise<void> {
  await ledger.catchUp()
  if (ledger.head().version === 0) return
  const manifest = await currentManifest(ledger, making)
  if (manifest === null || manifest.runs !== runsMark(ledger)) await buildCurrent(ledger, making)
}

/** Builds the views; a process that only reads views does not load the code for that. */
async function buildCurrent(ledger: Ledger, making: ViewsBuild): Promise<BuiltViews> {
  const { buildViews } = await import('./build.ts')
  return await buildViews(ledger, making)
}

/**
 * Leaves a lake with views of its newest version in the middle of a command. Views that lack only rows of `runs` and
 * `requests` stay: these rows make no version, each job adds some, and the command itself ends with
 * `bringViewsForward`.
 */
export async function makeVersionCurrent(ledger: Ledger, making: ViewsBuild): Promise<BuiltViews> {
  await ledger.catchUp()
  const manifest = await currentManifest(ledger, making)
  return manifest === null ? await buildCurrent(ledger, making) : await standingViews(ledger, manifest)
}

/** Describes views that a manifest names and that stay as they are. */
async function standingViews(ledger: Ledger, { version, objects }: Manifest): Promise<BuiltViews> {
  const files = new Set(liveFiles(ledger).map(({ path }) => path)).size
  const bytes = (await statOf(inLake(ledger.root, places.database)))?.size ?? 0
  return { made: false, version, objects: Object.keys(objects).length, files, exports: 0, bytes }
}

/**
 * Reads the manifest of the views in place if they are whole, of the newest version, and what this program and this
 * catalogue would make, apart from the rows of runs; null otherwise.
 */
async function currentManifest(ledger: Ledger, { catalogue, deps }: ViewsBuild): Promise<Manifest | null> {
  const manifest = await readManifest(ledger.root)
  if (manifest === undefined) return null
  const { version, program } = manifest
  if (version > ledger.head().version) return null
  if (lagOf(viewsOf(version, program), { newest: ledger.head().version, program: deps.program }) !== null) return null
  const isOurs = manifest.templates === templatesDigest() && manifest.catalogue === catalogueDigest(catalogue)
  return isOurs ? manifest : null
}

/** Jobs that leave current views when they end. */
const jobLocks = ['metrics', 'registry', 'import', 'merge']

/**
 * Whether a reader with this catalogue may rebuild the views: it can write there, no job is at work that will, and they
 * were made with the same catalogue, or no record names one.
 */
export async function mayBringForward(root: string, catalogue: Catalogue): Promise<boolean> {
  if (!isWritable(root) || !jobLocks.every((name) => isFree(root, name))) return false
  const manifest = await readManifest(root, [])
  return manifest === undefined || manifest.catalogue === catalogueDigest(catalogue)
}
