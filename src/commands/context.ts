import { type Catalogue, dimensions } from '../catalog/catalogue.ts'
import { loadCatalogue } from '../catalog/load.ts'
import type { Selection } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { applySettings, resolveSettings, type Settings } from '../config/settings.ts'
import { refuseSlips } from '../metrics/assets.ts'
import { heldSelections } from '../metrics/prepare.ts'
import { kinds } from '../kinds.ts'
import { formatInstant, intervals } from '../time.ts'
import { type Deps, flagOption, type Input, listOption, numberOption, type OptionSpec, textOption } from './spec.ts'

/** The flags that select series; the same for `plan` and `fetch`. */
export const selectionOptions: readonly OptionSpec[] = [
  { flags: '--paths LIST', kind: kinds.list('metrics'), about: 'endpoints, by comma, `*` as a glob' },
  { flags: '--assets LIST', kind: kinds.list('assets'), about: 'asset ids, by comma' },
  {
    flags: '--intervals LIST',
    kind: kinds.list(intervals),
    about: `${intervals.join(', ')} or '*' (default: 24h, else the coarsest)`,
  },
  { flags: '--currencies LIST', kind: kinds.list(['native', 'usd']), about: "native, usd or '*' (default: native)" },
  { flags: '--exchanges LIST', about: "exchange ids or '*' (default: aggregated, else the first)" },
  { flags: '--networks LIST', about: "networks or '*' (default: eth)" },
  { flags: '--since TIME', kind: kinds.instant, about: 'first t to bring, a date or an instant, UTC' },
  { flags: '--until TIME', kind: kinds.instant, about: 'end of the range of t, exclusive' },
  { flags: '--max-requests N', about: 'stop after so many requests' },
  { flags: '--gaps', about: 'ask only for known gaps' },
]

/** Settings and catalogue of a call. */
export interface Context {
  readonly settings: Settings
  readonly catalogue: Catalogue
}

/** What flags, environment and config file say together. */
export function readSettings(input: Input, { env, cwd }: Pick<Deps, 'env' | 'cwd'>): Settings {
  const flags = { config: textOption(input, 'config'), data: textOption(input, 'data') }
  return resolveSettings({ flags, env, cwd })
}

/** Whether to say more. */
export function isVerbose(input: Input, { env }: Pick<Deps, 'env'>): boolean {
  return flagOption(input, 'verbose') || env['PITLAKE_LOG'] === 'debug'
}

/** Settings and catalogue of this call. */
export async function readContext(input: Input, deps: Pick<Deps, 'env' | 'cwd'>): Promise<Context> {
  const settings = readSettings(input, deps)
  return { settings, catalogue: applySettings(await checkedCatalogue(settings.catalogs), settings) }
}

/** The built-in catalogue with these files, if the lake has room for them: for the built-in one alone it has. */
export async function checkedCatalogue(files: readonly string[]): Promise<Catalogue> {
  const catalogue = loadCatalogue(files)
  if (files.length > 0) (await import('../views/clashes.ts')).refuseClashes(catalogue)
  return catalogue
}

/** The range of t that `--since` and `--until` name. */
export function rangeOption(input: Input): { readonly since: number | undefined; readonly until: number | undefined } {
  const since = numberOption(input, 'since')
  const until = numberOption(input, 'until')
  if (since === undefined || until === undefined || since < until) return { since, until }
  const got = `${formatInstant(since)} and ${formatInstant(until)}`
  throw usage('--since', { expected: 'an instant before --until', got })
}

/** What ends a run: a signal, or `--timeout`, in seconds. */
export function runOf(input: Input, { signal, sleep }: Deps): Pick<Deps, 'signal' | 'sleep'> {
  const seconds = numberOption(input, 'timeout') ?? longestRun
  return { signal: AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]), sleep }
}

const longestRun = 3600
/** How long a command that runs stamped queries may take. */
export const timeoutOption: OptionSpec = {
  flags: '--timeout SECONDS',
  about: 'give up after so long',
  default: String(longestRun),
}

/**
 * What the flags and the config file select: flags for paths, assets or dimensions make a selection of
 * their own, without them `select` holds, without that what the lake holds; since and until only narrow it.
 */
export async function selectionsOf(input: Input, { settings, catalogue }: Context): Promise<readonly Selection[]> {
  const { since, until } = rangeOption(input)
  const named = ['paths', ...dimensions.map(({ many }) => many)].map((key) => [key, listOption(input, key)] as const)
  const assets = listOption(input, 'assets')
  if (assets !== undefined) await refuseSlips(settings.data, assets)
  const lists = [assets, ...named.map(([, list]) => list)]
  const exact = assets !== undefined && !lists.some((list) => list?.includes('*'))
  const own = lists.every((list) => list === undefined)
    ? settings.select
    : [{ ...Object.fromEntries(named), assets: assets ?? assetsOf(settings), exact }]
  const base = own.length > 0 ? own : await heldSelections(settings, catalogue)
  if (base.length === 0)
    throw usage('nothing is selected', {
      next: 'name assets (`--assets BTC,ETH`) or write `select:` into pitlake.yaml',
    })
  return base.map((selection) => ({ ...selection, ...narrowed(selection, since, until) }))
}

/** Flags that name no assets take those of the config file. */
function assetsOf(settings: Settings): readonly string[] {
  const assets = [...new Set(settings.select.flatMap((selection) => selection.assets))]
  if (assets.length === 0)
    throw usage('--assets', { expected: 'asset ids', got: 'none', next: 'for example `--assets BTC,ETH`' })
  return assets
}

function narrowed(
  selection: Selection,
  since: number | undefined,
  until: number | undefined,
): Pick<Selection, 'since' | 'until'> {
  return {
    since: since === undefined ? selection.since : Math.max(since, selection.since ?? since),
    until: until === undefined ? selection.until : Math.min(until, selection.until ?? until),
  }
}
