import { type Catalogue, dimensions } from '../catalog/catalogue.ts'
import { loadCatalogue } from '../catalog/load.ts'
import type { Selection } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { applySettings, resolveSettings, type Settings } from '../config/settings.ts'
import { refuseSlips } from '../metrics/assets.ts'
import { heldSelections } from '../metrics/prepare.ts'
import { kinds } from '../kinds.ts'
import { keepMemory } from '../store/memory.ts'
import { formatInstant, intervals } from '../time.ts'
import { ownMemory } from './memory.ts'
import type { CommandContext, Deps, Input, OptionValues } from './spec.ts'

/** The flags that select series; the same for `plan` and `fetch`. */
export const selectionOptions = {
  '--paths LIST': { kind: kinds.list('metrics'), about: 'endpoints, by comma, `*` as a glob' },
  '--assets LIST': { kind: kinds.list('assets'), about: 'asset ids, by comma' },
  '--intervals LIST': {
    kind: kinds.list(intervals),
    about: `${intervals.join(', ')} or '*' (default: 24h, else the coarsest)`,
  },
  '--currencies LIST': { kind: kinds.list(['native', 'usd']), about: "native, usd or '*' (default: native)" },
  '--exchanges LIST': "exchange ids or '*' (default: aggregated, else the first)",
  '--networks LIST': "networks or '*' (default: eth)",
  '--since TIME': { kind: kinds.instant, about: 'first t to bring, a date or an instant, UTC' },
  '--until TIME': { kind: kinds.instant, about: 'end of the range of t, exclusive' },
} as const

/** And those that bound what is asked of them. */
export const boundingOptions = {
  '--max-requests N': 'stop after so many requests',
  '--gaps': 'ask only for known gaps',
} as const

type Selecting = OptionValues<typeof selectionOptions>

/** What flags, environment and config file say together; from here on the process keeps to the memory that they name. */
export function settingsOf(input: Input, { env, cwd }: Pick<Deps, 'env' | 'cwd'>): Settings {
  const settings = resolveSettings({ flags: input.options, env, cwd })
  const { memoryBytes, where } = settings
  const named = input.options.memory === undefined ? where(['memory']) : '--memory'
  keepMemory(memoryBytes ?? ownMemory(), named)
  return settings
}

/** Whether to say more. */
export function isVerbose(input: Input, { env }: Pick<Deps, 'env'>): boolean {
  return input.options.verbose || env['PITLAKE_LOG'] === 'debug'
}

/** Settings and catalogue of this call. */
export async function readContext(input: Input, deps: Pick<Deps, 'env' | 'cwd'>): Promise<CommandContext> {
  const settings = settingsOf(input, deps)
  return { settings, catalogue: applySettings(await checkedCatalogue(settings.catalogs), settings) }
}

/** The built-in catalogue with these files, if the lake has room for them: for the built-in one alone it has. */
export async function checkedCatalogue(files: readonly string[]): Promise<Catalogue> {
  const catalogue = loadCatalogue(files)
  if (files.length > 0) (await import('../views/clashes.ts')).refuseClashes(catalogue)
  return catalogue
}

/** The range of t that `--since` and `--until` name. */
export function rangeOf({ since, until }: Pick<Selecting, 'since' | 'until'>): Pick<Selecting, 'since' | 'until'> {
  if (since === undefined || until === undefined || since < until) return { since, until }
  const got = `${formatInstant(since)} and ${formatInstant(until)}`
  throw usage('--since', { expected: 'an instant before --until', got })
}

/** What ends a run: a signal, or `--timeout`, in seconds. */
export function withinTime(
  { options: { timeout } }: Input<typeof timeoutOption>,
  { signal, sleep }: Deps,
): Pick<Deps, 'signal' | 'sleep'> {
  return { signal: AbortSignal.any([signal, AbortSignal.timeout(timeout * 1000)]), sleep }
}

/** How long a command that runs stamped queries may take. */
export const timeoutOption = { '--timeout SECONDS': { about: 'give up after so long', default: '3600' } } as const

/**
 * What the flags and the config file select: flags for paths, assets or dimensions make a selection of
 * their own, without them `select` holds, without that what the lake holds; since and until only narrow it.
 */
export async function selectionsOf(
  { options }: Input<typeof selectionOptions>,
  { settings, catalogue }: CommandContext,
): Promise<readonly Selection[]> {
  const { since, until } = rangeOf(options)
  const { assets } = options
  const named = (['paths', ...dimensions.map(({ many }) => many)] as const).map((key) => [key, options[key]] as const)
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
