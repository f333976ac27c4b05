import { type RegistryView, type Table, tables } from './state.ts'
import type { EntityType, Row } from './store.ts'

/** A way in which the registry contradicts itself about one record, written `products/some-id`. */
export interface Lie {
  /**
   * `lost-event`: its events are left out of the feed. `wrong-retirement`: snapshot and feed say inactive.
   * `silent-change`: a field has another value everywhere, and no event says so. `filter-omits`: filtered lists leave it out.
   */
  readonly kind: 'lost-event' | 'wrong-retirement' | 'silent-change' | 'filter-omits'
  readonly record: string
  readonly field?: string | undefined
  /** JSON, or plain text; absent: the value as it was, with a mark. */
  readonly value?: string | undefined
}

/** The view of whoever asks by this way: `told` is what snapshot and feed say, else addresses and lists. */
export function liedTo(view: RegistryView, lies: readonly Lie[], told: boolean): RegistryView {
  const own = lies.filter(({ kind }) => kind === 'silent-change' || (told && kind === 'wrong-retirement'))
  if (own.length === 0) return view
  const edit = (type: EntityType, id: string, row: Row): Row =>
    own.filter((lie) => isAbout(lie, type, id)).reduce((shown, lie) => ({ ...shown, ...changed(lie, shown) }), row)
  return { ...view, edit }
}

/** Whether one of the lies is of this kind and about this entity. */
export function isLied(lies: readonly Lie[], kind: Lie['kind'], type: EntityType, id: string): boolean {
  return lies.some((lie) => lie.kind === kind && isAbout(lie, type, id))
}

function isAbout({ record }: Lie, type: EntityType, id: string): boolean {
  const [table = '', ...rest] = record.split('/')
  return Object.hasOwn(tables, table) && tables[table as Table] === type && rest.join('/') === id
}

function changed({ kind, field = 'name', value }: Lie, row: Row): Row {
  if (kind === 'wrong-retirement') return { status: 'inactive' }
  if (value === undefined) {
    const before = row[field]
    return { [field]: `${typeof before === 'string' ? before : JSON.stringify(before)} (restated)` }
  }
  try {
    return { [field]: JSON.parse(value) as unknown }
  } catch {
    return { [field]: value }
  }
}
