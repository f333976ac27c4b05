import { type Catalogue, type Endpoint, isNameless } from '../../catalog/catalogue.ts'
import { globTest } from '../../catalog/globs.ts'
import { hasOwnNames, isOpenExchange } from '../../catalog/names.ts'
import { expand, pathNames, readableSeries, type Selection, type Series } from '../../catalog/series.ts'
import { isLoopback, type Settings } from '../../catalog/settings.ts'
import type { Provider } from '../../lake/ledger/entry.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { several } from '../../base/figures.ts'
import type { MetricsProvider } from './api.ts'
import { isKnownSelection } from './names.ts'
import { unlessUnlisted, withListedAssets } from './assets.ts'
import { placeholderReason } from './plan.ts'

/** A placeholder of the catalogue without a real name in the configuration. */
interface Placeholder {
  /** Key of the configuration that maps it. */
  readonly setting: 'metrics.paths' | 'metrics.exchanges'
  /** The path or the exchange, as the catalogue spells it. */
  readonly name: string
  /** The reason to record for a window that is not requested because of it. */
  readonly reason: string
  /** Paths of the provider that fit, if its listing is known. */
  readonly candidates: readonly string[] | null
}

/** A selected placeholder without a mapping, and the series that are never requested because of it. */
export interface UnmappedName extends Pick<Placeholder, 'setting' | 'name'> {
  /** Ids of these series. */
  readonly series: readonly string[]
}

/** A provider, and the selections of its data. */
interface UnmappedInput extends MetricsProvider {
  readonly selections: readonly Selection[]
  /** Ids of the selected series to look at; all unless given. */
  readonly only?: ReadonlySet<string>
}

/**
 * Whether placeholders may be sent. They are names of the sandbox only; a different provider on this machine identifies
 * itself with its answers.
 */
function mayTakePlaceholders({ metrics }: Settings, provider: Provider | null): boolean {
  if (metrics.url !== null && !isLoopback(metrics.url)) return false
  return provider?.metrics === undefined || provider.synthetic
}

/** Returns the reason why the series must not be requested from this lake's provider; null if it may be. */
export function blockedFor(
  settings: Settings,
  catalogue: Catalogue,
  provider: Provider | null,
  series: Series,
  endpoint: Endpoint,
): string | null {
  const isTaken = mayTakePlaceholders(settings, provider) && !hasOwnNames(catalogue)
  return isTaken ? null : unmappedReason(catalogue, series, endpoint)
}

/**
 * Returns the reason why the series cannot be requested from a real provider, a placeholder without a real name; null
 * if it can.
 */
export function unmappedReason(catalogue: Catalogue, series: Series, endpoint: Endpoint): string | null {
  return placeholderIn(catalogue, series, endpoint)?.reason ?? null
}

function placeholderIn(catalogue: Catalogue, { exchange }: Series, endpoint: Endpoint): Placeholder | null {
  if (isNameless(endpoint)) {
    const { path: name, candidates = null, placeholders } = endpoint
    const remedy =
      candidates?.length === 0 ? 'the provider lists no such path' : `map it under metrics.paths${fitting(candidates)}`
    const reason = `${placeholderReason} ${placeholders.join(', ')} in the path: ${remedy}`
    return { setting: 'metrics.paths', name, reason, candidates }
  }
  if (exchange === null || !isOpenExchange(catalogue, exchange)) return null
  const reason = `${placeholderReason} exchange ${exchange}: map it under metrics.exchanges`
  return { setting: 'metrics.exchanges', name: exchange, reason, candidates: null }
}

const fitting = (candidates: readonly string[] | null): string =>
  candidates === null ? '' : ` (${candidates.join(' and ')} fit)`

/**
 * Finds selected placeholders that are never requested from this provider: a path or an exchange that a selection
 * names, or everything that its glob names. A placeholder that a wide glob names among others, or that comes from the
 * lake's own contents, does not count as selected.
 */
export async function selectedPlaceholders(
  { settings, catalogue, selections, only }: UnmappedInput,
  ledger: Ledger | null,
  provider: Provider | null = ledger?.head().provider ?? null,
): Promise<readonly UnmappedName[]> {
  if (mayTakePlaceholders(settings, provider) && !hasOwnNames(catalogue)) return []
  const chosen = selections.filter(({ held }) => held !== true)
  const listed = (await unlessUnlisted(withListedAssets(chosen, ledger))) ?? []
  const placeholders = new Map<string, Pick<Placeholder, 'setting' | 'name'> & { readonly series: Set<string> }>()
  for (const selection of listed) {
    const names = expand(catalogue, [selection]).map(({ series, endpoint }) => {
      return { series, endpoint, placeholder: placeholderIn(catalogue, series, endpoint) }
    })
    for (const glob of selection.paths ?? ['*']) {
      const isOfGlob = globTest(glob)
      const matching = names.filter(({ endpoint }) => pathNames(endpoint).some(isOfGlob))
      const isAll = matching.every(({ placeholder }) => placeholder !== null)
      for (const { series, placeholder } of matching) {
        if (placeholder === null || only?.has(series.id) === false) continue
        const isNamed = series.exchange !== null && selection.exchanges?.includes(series.exchange) === true
        if (!isAll && !isNamed) continue
        const { setting, name, candidates } = placeholder
        // The provider's listing decides: no path of the provider fits, or several do.
        if (candidates !== null && candidates.length > 1) refuseAmbiguous(settings, name, candidates)
        const collected = placeholders.get(`${setting} ${name}`) ?? { setting, name, series: new Set<string>() }
        placeholders.set(`${setting} ${name}`, collected)
        collected.series.add(series.id)
      }
    }
  }
  return [...placeholders.values()].map((placeholder) => ({ ...placeholder, series: [...placeholder.series] }))
}

/** Refuses a selected path that may stand for several paths of the provider, because only the user can choose. */
function refuseAmbiguous(settings: Settings, name: string, candidates: readonly string[]): never {
  throw usage(settings.where(['metrics', 'paths', name]), {
    expected: 'one path of the provider',
    got: candidates.join(' and '),
    next: `choose one in pitlake.yaml: metrics: { paths: { ${name}: ${candidates[0]} } }`,
  })
}

/**
 * Lists the selected placeholders for a lake that may not exist yet. A selection by a name that no catalogue has is
 * left out: it may be one of the provider's own, which the next fetch learns.
 */
export async function selectedPlaceholdersNow(input: UnmappedInput): Promise<readonly UnmappedName[]> {
  const { catalogue, settings } = input
  using ledger = isBegun(settings.data) ? await Ledger.openToRead(settings.data) : null
  const selections = input.selections.filter((selection) => isKnownSelection(catalogue, selection))
  return await selectedPlaceholders({ ...input, selections }, ledger)
}

/** Maximum number of series and names that are written out. */
const mostShown = 3

/** Describes the number of series that are never requested, and lists some of them. */
export function unmappedInWords(names: readonly UnmappedName[]): string {
  const series = [...new Set(names.flatMap((unmappedName) => unmappedName.series))]
  const listed = series.slice(0, mostShown).map((id) => {
    const { metric, asset, interval, currency, exchange, network } = readableSeries(id)
    return [metric, asset, interval, currency, exchange, network].filter((part) => part !== null).join(' ')
  })
  const more = series.length > mostShown ? ` and ${series.length - mostShown} more` : ''
  return (
    `${several(series.length, 'selected series is', 'selected series are')} never requested: ` +
    `${listed.join(', ')}${more}`
  )
}

/** Returns the missing part of the configuration; null if nothing is missing. */
export function mappingRemedy(names: readonly UnmappedName[]): string | null {
  if (names.length === 0) return null
  const bySetting = Map.groupBy(names.slice(0, mostShown), ({ setting }) => setting)
  const maps = [...bySetting].map(([setting, namesOfSetting]) => {
    return `${setting.slice('metrics.'.length)}: { ${namesOfSetting.map(({ name }) => `${name}: NAME`).join(', ')} }`
  })
  const more = names.length > mostShown ? ` (and ${names.length - mostShown} more)` : ''
  const which = names.length === 1 ? `${names[0]?.name} is a placeholder` : 'these names are placeholders'
  return (
    `${which} of the catalogue: write into pitlake.yaml what the provider calls it, metrics: { ` +
    `${maps.join(', ')} }${more}, or take it out of what is selected`
  )
}

/** Returns the error with which a command ends if selected series are never requested; null otherwise. */
export function unmappedError(names: readonly UnmappedName[]): LakeError | null {
  const next = mappingRemedy(names)
  return next === null ? null : new LakeError('incomplete', { subject: unmappedInWords(names), next })
}
