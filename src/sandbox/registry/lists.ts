import { invalidCursor, invalidParameter, notFound, readLimit, readQuery } from './refusal.ts'
import { type RegistryView, type Table, recordOf, recordsOf, rowOf, tables } from './state.ts'
import { type Row, idsOf } from './store.ts'
import {
  assetClasses,
  deploymentStatuses,
  itemStatuses,
  laterAssetClass,
  laterVenueType,
  venueTypes,
  verificationStatuses,
} from './vocabulary.ts'

/** How a filter compares: exactly, without regard to case, or as addresses do. */
interface Filter {
  readonly field: string
  readonly compare?: 'any-case' | 'address'
  readonly values?: readonly string[]
  readonly form?: RegExp
}

const idForm = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
const plainHex = /^0x[0-9a-fA-F]+$/

const filters: Readonly<Record<Table, Readonly<Record<string, Filter>>>> = {
  issuers: {
    jurisdiction: { field: 'jurisdiction', form: /^[A-Z]{2}$/ },
    status: { field: 'status', values: itemStatuses },
    custodian: { field: 'custodian' },
  },
  assets: {
    asset_class: { field: 'asset_class', values: [...assetClasses, laterAssetClass] },
    ticker: { field: 'ticker', compare: 'any-case' },
    isin: { field: 'isin', compare: 'any-case' },
  },
  products: {
    issuer: { field: 'issuer_id' },
    asset: { field: 'asset_id' },
    status: { field: 'status', values: itemStatuses },
    symbol: { field: 'symbol', compare: 'any-case' },
    isin: { field: 'isin', compare: 'any-case' },
  },
  deployments: {
    product: { field: 'product_id' },
    chain: { field: 'chain_id' },
    status: { field: 'status', values: deploymentStatuses },
    verification_status: { field: 'verification_status', values: verificationStatuses },
    address: { field: 'address', compare: 'address' },
  },
  venues: { venue_type: { field: 'venue_type', values: [...venueTypes, laterVenueType] } },
  derivatives: { symbol: { field: 'symbol', compare: 'any-case' } },
}

/** The changing part of a list answer; the envelope's `as_of` is not in it. */
export interface ListPage {
  readonly data: readonly Row[]
  readonly next_cursor: string | null
  readonly has_more: boolean
}

/** One page of a list in id order, after the filters; the deployment list holds verified rows only. */
export function listPage(
  view: RegistryView,
  table: Table,
  query: URLSearchParams,
  omits: (table: Table, id: string) => boolean = () => false,
): ListPage {
  const own = filters[table]
  const given = readQuery(query, ['limit', 'cursor', ...Object.keys(own)])
  const limit = readLimit(given)
  const passes = readFilters(own, given, table)
  const filtered = Object.keys(own).some((name) => given.has(name))
  const ids = idsOf(view.store, tables[table])
  const data: Row[] = []
  let more = false
  for (let i = firstAfter(ids, given.get('cursor')); i < ids.length && !more; i++) {
    const id = ids[i] as string
    const row = rowOf(view, tables[table], id)
    if (!row || !passes(row) || (filtered && omits(table, id))) continue
    if (data.length === limit) more = true
    else data.push(recordOf(view, tables[table], id) as Row)
  }
  const last = data.at(-1)?.['id'] as string | undefined
  return { data, next_cursor: more && last !== undefined ? last : null, has_more: more }
}

/** The record behind a detail path; derivatives have none. */
export function detail(view: RegistryView, table: Table, id: string, query: URLSearchParams): Row {
  readQuery(query, [])
  const record = table === 'derivatives' ? undefined : recordOf(view, tables[table], id)
  if (!record) throw notFound(`no entity with that id in ${table}`)
  return record
}

/** Every record of a table, for the snapshot. */
export function allRecords(view: RegistryView, table: Table, embed: boolean): Iterable<Row> {
  return recordsOf(view, tables[table], embed)
}

function readFilters(
  own: Readonly<Record<string, Filter>>,
  given: ReadonlyMap<string, string>,
  table: Table,
): (row: Row) => boolean {
  const tests = [...given].flatMap(([name, value]) => {
    const filter = own[name]
    if (!filter) return []
    const supported = (filter.values?.includes(value) ?? true) && (filter.form?.test(value) ?? true)
    if (!supported) throw invalidParameter(`unsupported value of parameter: ${name}`)
    return [matcher(filter, value)]
  })
  if (table === 'deployments') tests.push((row) => row['verification_status'] === 'verified')
  return (row) => tests.every((test) => test(row))
}

function matcher({ field, compare }: Filter, value: string): (row: Row) => boolean {
  const anyCase = compare === 'any-case' || (compare === 'address' && plainHex.test(value))
  if (!anyCase) return (row) => row[field] === value
  const wanted = value.toLowerCase()
  return (row) => typeof row[field] === 'string' && row[field].toLowerCase() === wanted
}

function firstAfter(ids: readonly string[], cursor: string | undefined): number {
  if (cursor === undefined) return 0
  if (!idForm.test(cursor)) throw invalidCursor('cursor must be the next_cursor of the previous page')
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ids[middle] as string) <= cursor) low = middle + 1
    else high = middle
  }
  return low
}
