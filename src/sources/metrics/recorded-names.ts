import type { ProviderNames } from '../../catalog/catalogue.ts'
import { noNames } from '../../catalog/names.ts'
import { storedState } from '../../lake/ledger/index-queries.ts'
import { type Index, checkedValue } from '../../lake/ledger/index-rows.ts'
import { listOf, mapOf, shape, text } from '../../base/value-checks.ts'

/** Key of the committed state with the provider's names. */
export const namesKey = 'names'

const recorded = shape({
  paths: mapOf(text),
  exchanges: mapOf(text),
  endpoints: mapOf(shape({ exchanges: listOf(text), exchange: text })),
  candidates: mapOf(listOf(text)),
})

/** Returns the provider's own names as recorded in the lake, so that a reader needs no configuration. */
export function recordedNames(index: Index): ProviderNames {
  const state = storedState(index, namesKey)
  return state === undefined ? noNames : checkedValue(recorded, state, namesKey)
}
