import { lost } from './joins.ts'
import { type Node, part, parts, says, word } from './nodes.ts'
import { type Reading, type Relation, steady } from './relations.ts'
import { addValue, always, type Bound, type Obstacle } from './values.ts'

/** What is known of the rows of a view of the lake. */
export interface TableLabel {
  /** The instant of a row from which on it is known; null: always, the same on every cut. */
  readonly clock: string | null
  /** Columns that hold the end of a version. */
  readonly until?: readonly string[]
  /** Columns that are told later than their row. */
  readonly later?: readonly string[]
  /** Columns that are never NULL. */
  readonly present?: readonly string[]
  /** Only rows of which this column is true are known at `clock`. */
  readonly guard?: string
}

const ofPoints: TableLabel = { clock: 'available_at', present: ['metric', 'asset', 'interval', 't', 'available_at'] }

/** The tables of the shadow catalogue whose rows are dated. What is missing here is known to nobody. */
export const tableLabels: Readonly<Record<string, TableLabel>> = {
  points: ofPoints,
  components: ofPoints,
  price_usd: ofPoints,
  proof_points: ofPoints,
  proof_calendar: { clock: null, present: ['ts'] },
  proof_versions: { clock: '_pit_since', until: ['_pit_ended'], present: ['valid_from', '_pit_since', '_pit_ended'] },
  proof_coarse: { ...ofPoints, guard: 'complete' },
  endpoints: { clock: null },
  registry_start: { clock: 'known_since' },
  registry_events: { clock: 'polled_at' },
  registry_findings: { clock: 'found_at' },
}

const ofHistory: TableLabel = {
  clock: 'valid_from',
  until: ['valid_to'],
  later: ['closed_by'],
  present: ['id', 'valid_from', 'valid_to'],
}

/** What is known of the rows of a table; undefined where its rows are dated for nobody. */
export function labelOf(schema: string, table: string): TableLabel | undefined {
  if (schema === 'history') return ofHistory
  return schema === 'main' && Object.hasOwn(tableLabels, table) ? tableLabels[table] : undefined
}

/** The rows of a table of the shadow catalogue, or of a function that makes rows of constants. */
export function scanned(reading: Reading, node: Node): Relation {
  const names = Array.isArray(node['names']) ? (node['names'] as readonly unknown[]).map(String) : []
  const types = parts(node, 'returned_types').map((type) => word(type, 'id'))
  const places = parts(node, 'column_indexes').map((one) => Number(one['index']))
  const made = (label: (name: string) => Bound, until: readonly string[] = []): number[] =>
    places.map((at) => {
      const name = names[at]
      const bound = name === undefined ? rowid : label(name)
      return addValue(reading.values, name ?? 'rowid', types[at] ?? '', bound, { until: until.includes(name ?? '') })
    })
  const about = part(node, 'function_data')
  const table = word(about, 'table')
  const odd =
    says(node, 'projection_ids') || says(part(node, 'table_filters'), 'filters') || parts(node, 'children').length > 0
  if (odd || says(part(node, 'extra_info'), 'sample_options'))
    return lost(
      { what: table || word(node, 'name'), why: 'it is read in a way for which no rule is known' },
      made(() => always),
    )
  if (/^(?:range|generate_series)$/.test(word(node, 'name'))) return steady(made(() => always))
  const label = word(node, 'name') === 'seq_scan' ? labelOf(word(about, 'schema'), table) : undefined
  if (label === undefined)
    return lost(
      undated(word(about, 'schema'), table || `${word(node, 'name')}()`),
      made(() => always),
    )
  return dated(reading, table, label, names, types, places)
}

const rowid: Obstacle = { what: 'rowid', why: 'the place of a row depends on what came later' }

function undated(schema: string, table: string): Obstacle {
  const name = schema === 'main' || schema === '' ? table : `${schema}.${table}`
  return { what: name, why: 'it shows a state as it is now, whose rows are not dated one by one' }
}

function dated(
  reading: Reading,
  table: string,
  label: TableLabel,
  names: readonly string[],
  types: readonly string[],
  places: readonly number[],
): Relation {
  const { clock, until = [], later = [], present = [], guard } = label
  const ids = new Map(
    names.map((name, at) => {
      const told: Obstacle = { what: `${table}.${name}`, why: 'it is told when the next version comes' }
      const bound = until.includes(name) || later.includes(name) ? told : always
      return [name, addValue(reading.values, shownClock(name), types[at] ?? '', bound, { until: until.includes(name) })]
    }),
  )
  const idOf = (name: string | undefined): number =>
    ids.get(name ?? '') ?? addValue(reading.values, 'rowid', 'BIGINT', rowid)
  const rows: Bound = clock === null ? always : new Set([idOf(clock)])
  const columns = places.map((at) => idOf(names[at]))
  const known = { ...steady(columns), present: new Set(present.flatMap((name) => ids.get(name) ?? [])) }
  if (clock !== null)
    reading.reasons.add(
      `${shownAs(table)}: a row is known at its ${shownClock(clock)}${guard === undefined ? '' : ` where ${guard}`}${standIn(reading, table, clock)}`,
    )
  if (guard === undefined) return { ...known, rows }
  const open: Obstacle = {
    what: shownAs(table),
    why: `a row that lacks parts changes when they come; keep those that are ${guard}`,
  }
  return { ...known, rows: open, guard: { id: idOf(guard), rows } }
}

/** A state of a product is known as soon as the version that made it. */
function shownClock(name: string): string {
  return name === '_pit_since' ? 'valid_from' : name
}

/** What counts as known earlier by a setting. */
function standIn({ settings }: Reading, table: string, clock: string): string {
  if (table === 'proof_versions' && settings.has('registry_backfill'))
    return ', before the first snapshot assumed to be what that says'
  return clock === 'available_at' && settings.has('backfill')
    ? ', where it was backfilled assumed to be by its rule'
    : ''
}

const shownNames: Readonly<Record<string, string>> = {
  proof_points: 'the lake’s joins',
  proof_versions: 'pit_universe',
  proof_coarse: 'resample',
}

function shownAs(table: string): string {
  return shownNames[table] ?? table
}
