import type { Catalogue } from '../catalog/catalogue.ts'
import { loadCatalogue } from '../catalog/load.ts'
import type { Selection } from '../catalog/series.ts'
import { usage } from '../errors.ts'
import { applySettings, resolveSettings, type Settings } from '../config/settings.ts'
import { heldSelections } from '../metrics/prepare.ts'
import { refuseClashes } from '../views/clashes.ts'
import { intervals, parseInstant } from '../time.ts'
import { type Deps, type Input, listOption, type OptionSpec, textOption } from './spec.ts'

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
interface Context {
  readonly settings: Settings
  readonly catalogue: Catalogue
}

/** Settings and catalogue of this call. */
export function readContext(input: Input, deps: Deps): Context {
  const flags = { config: textOption(input, 'config'), data: textOption(input, 'data') }
  const settings = resolveSettings({ flags, env: deps.env, cwd: deps.cwd })
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

/** A whole number given by an option. */
export function countOption(input: Input, name: string, flag: string): number | undefined {
  const text = textOption(input, name)
  if (text === undefined) return undefined
  if (!/^[1-9]\d{0,11}$/.test(text)) throw usage(flag, { expected: 'a whole number above 0', got: text })
  return Number(text)
}

/**
 * What the flags and the config file select: flags for paths, assets or dimensions make a selection of
 * their own, without them `select` holds, without that what the lake holds; since and until only narrow it.
 */
export async function selectionsOf(input: Input, { settings, catalogue }: Context): Promise<readonly Selection[]> {
  const since = instantOption(input, 'since')
  const until = instantOption(input, 'until')
  if (since !== undefined && until !== undefined && since >= until) {
    throw usage('--since', {
      expected: 'an instant before --until',
      got: `${textOption(input, 'since')} and ${textOption(input, 'until')}`,
    })
  }
  const dimensions = {
    paths: listOption(input, 'paths'),
    intervals: listOption(input, 'intervals'),
    currencies: listOption(input, 'currencies'),
    exchanges: listOption(input, 'exchanges'),
    networks: listOption(input, 'networks'),
  }
  const assets = listOption(input, 'assets')
  const own = assets !== undefined || Object.values(dimensions).some((list) => list !== undefined)
  const exact = assets !== undefined && ![assets, ...Object.values(dimensions)].some((list) => list?.includes('*'))
  const named = own ? [{ ...dimensions, assets: assets ?? assetsOf(settings), exact }] : settings.select
  const base = named.length > 0 ? named : await heldSelections(settings, catalogue)
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
