import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Catalogue, dimensions } from '../../catalog/catalogue.ts'
import { loadCatalogue } from '../../catalog/load.ts'
import { readBounded } from '../../catalog/user-file.ts'
import type { Selection } from '../../catalog/series.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { applySettings, resolveSettings, type Settings } from '../../catalog/settings.ts'
import { kinds } from '../../base/option-kinds.ts'
import { formatInstant, type Instant, offeredIntervals } from '../../base/time.ts'
import type { Call, CommandContext, Deps, Input, OptionValues, Typed } from './spec.ts'
import { keepMemory } from '../../lake/store/memory.ts'
import { ownMemory } from './memory.ts'
import { endingAtOnce } from './process.ts'

/** The flags that select series; the same for `plan` and `fetch`. */
export const selectionOptions = {
  '--paths LIST': 'endpoints, by comma, `*` as a glob',
  '--assets LIST': 'asset ids, by comma',
  '--intervals LIST': [
    `${offeredIntervals.join(', ')} or '*' (default: 24h, else the coarsest)`,
    kinds.list(offeredIntervals),
  ],
  '--currencies LIST': ["native, usd or '*' (default: native)", kinds.list(['native', 'usd'])],
  '--exchanges LIST': "exchange ids or '*' (default: aggregated, else the first)",
  '--networks LIST': "networks or '*' (default: eth)",
  '--since TIME': 'first t to request: a date or a timestamp, UTC',
  '--until TIME': 'end of the range of t, exclusive',
} as const

/** Options that limit the requests for the selected series. */
export const boundingOptions = {
  '--max-requests N': 'stop after N requests',
  '--gaps': 'request only known gaps',
} as const

/** Values of the options that select series. */
type Selecting = OptionValues<typeof selectionOptions>

/**
 * Resolves the settings from flags, environment and config file; from here on the process keeps to the memory limit in
 * them.
 */
export function settingsOf({ options, env, cwd }: LocatedInput): Settings {
  const settings = endingAtOnce(() => resolveSettings({ flags: options, env, cwd }))
  const { memoryBytes, where } = settings
  keepMemory(memoryBytes ?? ownMemory(), options.memory === undefined ? where(['memory']) : '--memory')
  return settings
}

/** Command line in the place where it was typed. */
type LocatedInput = Input & Pick<Deps, 'env' | 'cwd'>

/** Whether to say more. */
export const isVerbose = ({ options, env }: Typed): boolean => options.verbose || env['PITLAKE_LOG'] === 'debug'

/** Returns the instant of a call, in Unix seconds. */
export const instantNow = ({ now }: Pick<Deps, 'now'>): Instant => Math.floor(now() / 1000)

/** Reads the settings and the catalogue of a call. */
export async function readContext<Own extends LocatedInput>(call: Own): Promise<Own & CommandContext> {
  const settings = settingsOf(call)
  const catalogue = await checkedCatalogue(settings.catalogs, settings)
  return { ...call, settings, catalogue: endingAtOnce(() => applySettings(catalogue, settings)) }
}

/**
 * Loads the built-in catalogue with these files, and the lake's user data; refuses files whose names clash with those
 * of the lake.
 */
export async function checkedCatalogue(files: readonly string[], lake?: Pick<Settings, 'data'>): Promise<Catalogue> {
  const catalogue = endingAtOnce(() => loadCatalogue(files))
  if (files.length > 0) (await import('../../query/views/column-clashes.ts')).refuseClashes(catalogue)
  return lake === undefined
    ? catalogue
    : (await import('../../sources/points/own-rows.ts')).withOwnOf(catalogue, lake.data)
}

/** Checks the range of t in `--since` and `--until`. */
export function rangeOf({ since, until }: Pick<Selecting, 'since' | 'until'>): Pick<Selecting, 'since' | 'until'> {
  if (since === undefined || until === undefined || since < until) return { since, until }
  const got = `${formatInstant(since)} and ${formatInstant(until)}`
  throw usage('--since', { expected: 'an instant before --until', got })
}

/** Combines the events that end a run: a signal, or `--timeout`, in seconds. */
export function withinTime(call: Typed<typeof timeoutOption>): Pick<Deps, 'signal' | 'sleep'> {
  return withinSeconds(call, call.options.timeout)
}

/** Combines the events that end a run: a signal, or so many seconds. */
export function withinSeconds({ signal, sleep }: Pick<Deps, 'signal' | 'sleep'>, seconds: number) {
  return { signal: AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]), sleep }
}

/** Seconds that a command that runs stamped queries may take by default. */
export const stampSeconds = 3600

/** Option that limits how long a command that runs stamped queries may take. */
export const timeoutOption = { '--timeout SECONDS': ['stop after this time', `${stampSeconds}`] } as const

/**
 * Reads the selections from the flags and the config file: flags for paths, assets or dimensions make a selection of
 * their own, without them `select` applies, without that what the lake has; since and until only narrow it.
 */
export async function selectionsOf(call: Call<typeof selectionOptions>): Promise<readonly Selection[]> {
  const { options, settings, catalogue } = call
  const { since, until } = rangeOf(options)
  const { assets } = options
  const named = (['paths', ...dimensions.map(({ plural }) => plural)] as const).map(
    (key) => [key, options[key]] as const,
  )
  if (assets !== undefined) {
    const { refuseSlips } = await import('../../sources/metrics/assets.ts')
    await refuseSlips(settings.data, assets)
  }
  const lists = [assets, ...named.map(([, list]) => list)]
  const exact = assets !== undefined && !lists.some((list) => list?.includes('*'))
  const isUnselected = lists.every((list) => list === undefined)
    ? settings.select
    : [{ ...Object.fromEntries(named), assets: assets ?? assetsOf(settings), exact }]
  // Loaded only here: most commands select no series.
  const { storedSelections } = await import('../../sources/metrics/prepare.ts')
  const base = isUnselected.length > 0 ? isUnselected : await storedSelections(settings, catalogue)
  const next = 'name assets (`--assets BTC,ETH`) or write `select:` into pitlake.yaml'
  if (base.length === 0) throw usage('nothing is selected', { next })
  return base.map((selection) => ({
    ...selection,
    since: since === undefined ? selection.since : Math.max(since, selection.since ?? since),
    until: until === undefined ? selection.until : Math.min(until, selection.until ?? until),
  }))
}

/** Flags that name no assets take those of the config file. */
function assetsOf(settings: Settings): readonly string[] {
  const assets = [...new Set(settings.select.flatMap((selection) => selection.assets))]
  const next = 'for example `--assets BTC,ETH`'
  if (assets.length === 0) throw usage('--assets', { expected: 'asset ids', got: 'none', next })
  return assets
}

/** Bytes of a file that is named on a command line: SQL, decisions, a certificate. */
const longestGiven = 256_000_000

/** Reads the text of a file that the user names, `-` for standard input; `subject` is what named it. */
export function readGiven({ cwd }: Pick<Deps, 'cwd'>, file: string, expected: string, subject = file): string {
  try {
    return readBounded(file === '-' ? 0 : resolve(cwd, file), longestGiven, subject)
  } catch (cause) {
    if (cause instanceof LakeError) throw cause
    const { code } = cause as NodeJS.ErrnoException
    throw usage(subject, { expected, got: code === 'ENOENT' ? 'no such file' : (code ?? String(cause)), cause })
  }
}

/** Resolves the path of a stamped result that the user names. */
export function stampedPath({ cwd }: Pick<Deps, 'cwd'>, file: string): string {
  const path = resolve(cwd, file)
  if (existsSync(path)) return path
  throw usage(file, {
    expected: 'a stamped result',
    got: 'no such file',
    next: 'pitlake stamp QUERY.sql --out FILE.parquet makes one',
  })
}

/** Builds the error of a verdict on a file, null for a good one: undecided is unfinished, a bad one contradicts. */
export function verdictError(
  file: string,
  { verdict, reason }: { readonly verdict: string; readonly reason: string | null },
  { good, bad, next, command }: Readonly<Record<'good' | 'bad' | 'next' | 'command', string>>,
): LakeError | null {
  if (verdict === good) return null
  const got = reason ?? undefined
  const mend = `correct what the reason names, then run pitlake ${command} again`
  return verdict === 'undecided'
    ? new LakeError('incomplete', { subject: `${file} is undecided`, got, next: mend })
    : new LakeError('integrity', { subject: `${file} ${bad}`, got, next })
}
