import { type Catalogue, dimensions } from '../catalog/catalogue.ts'
import { loadCatalogue } from '../catalog/load.ts'
import type { Selection } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { applySettings, resolveSettings, type Settings } from '../config/settings.ts'
import { heldSelections } from '../metrics/prepare.ts'
import { refuseClashes } from '../views/clashes.ts'
import { intervals, parseDuration, parseInstant } from '../time.ts'
import { type Deps, flagOption, type Input, listOption, type OptionSpec, textOption } from './spec.ts'

/** The flags that select series; the same for `plan` and `fetch`. */
export const selectionOptions: readonly OptionSpec[] = [
  { flags: '--paths LIST', about: 'endpoints, by comma, `*` as a glob' },
  { flags: '--assets LIST', about: 'asset ids, by comma' },
  { flags: '--intervals LIST', about: `${intervals.join(', ')} or '*' (default: 24h, else the coarsest)` },
  { flags: '--currencies LIST', about: "native, usd or '*' (default: native)" },
  { flags: '--exchanges LIST', about: "exchange ids or '*' (default: aggregated, else the first)" },
  { flags: '--networks LIST', about: "networks or '*' (default: eth)" },
  { flags: '--since TIME', about: 'first t to bring, a date or an instant, UTC' },
  { flags: '--until TIME', about: 'end of the range of t, exclusive' },
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
export function readContext(input: Input, deps: Deps): Context {
  const settings = readSettings(input, deps)
  return { settings, catalogue: applySettings(checkedCatalogue(settings.catalogs), settings) }
}

/** The built-in catalogue with these files, if the lake has room for it. */
export function checkedCatalogue(files: readonly string[]): Catalogue {
  const catalogue = loadCatalogue(files)
  refuseClashes(catalogue)
  return catalogue
}

/** An instant given by an option; a mistake is one line. */
export function instantOption(input: Input, name: string): number | undefined {
  const text = textOption(input, name)
  if (text === undefined) return undefined
  const at = parseInstant(text)
  if (at === undefined)
    throw usage(`--${name}`, { expected: 'a date such as 2024-06-01 or an instant with Z', got: text })
  return at
}

/** The range of t that `--since` and `--until` name. */
export function rangeOption(input: Input): { readonly since: number | undefined; readonly until: number | undefined } {
  const since = instantOption(input, 'since')
  const until = instantOption(input, 'until')
  if (since === undefined || until === undefined || since < until) return { since, until }
  const got = `${textOption(input, 'since')} and ${textOption(input, 'until')}`
  throw usage('--since', { expected: 'an instant before --until', got })
}

/** A whole number given by an option, above 0 unless said. */
export function countOption(input: Input, name: string, least: 0 | 1 = 1): number | undefined {
  const text = textOption(input, name)
  if (text === undefined) return undefined
  if (!/^(?:0|[1-9]\d{0,11})$/.test(text) || Number(text) < least)
    throw usage(flagOf(name), { expected: least === 0 ? 'a whole number' : 'a whole number above 0', got: text })
  return Number(text)
}

/** A time in seconds given by an option, such as these. */
export function timeOption(input: Input, name: string, such = '15m or 2d'): number | undefined {
  const text = textOption(input, name)
  if (text === undefined) return undefined
  const seconds = parseDuration(text)
  if (seconds === undefined) throw usage(flagOf(name), { expected: `a time such as ${such}`, got: `"${text}"` })
  return seconds
}

/** What ends a run: a signal, or `--timeout`, in seconds. */
export function runOf(input: Input, { signal, sleep }: Deps): Pick<Deps, 'signal' | 'sleep'> {
  const seconds = countOption(input, 'timeout') ?? longestRun
  return { signal: AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]), sleep }
}

const longestRun = 3600
/** How long a command that runs stamped queries may take. */
export const timeoutOption = { flags: '--timeout SECONDS', about: 'give up after so long', default: String(longestRun) }

/** `maxAge` as it is typed: `--max-age`. */
function flagOf(name: string): string {
  return `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/**
 * What the flags and the config file select: flags for paths, assets or dimensions make a selection of
 * their own, without them `select` holds, without that what the lake holds; since and until only narrow it.
 */
export async function selectionsOf(input: Input, { settings, catalogue }: Context): Promise<readonly Selection[]> {
  const { since, until } = rangeOption(input)
  const named = ['paths', ...dimensions.map(({ many }) => many)].map((key) => [key, listOption(input, key)] as const)
  const assets = listOption(input, 'assets')
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
