import type { SourceMapping } from '../catalog/sources.ts'
import { quote, quoteName } from '../store/engine.ts'
import type { OwnFiles } from './files.ts'

/** A column that is a day: `2024-02-05`, or with the name of a series before it, `UNRATE_20240205`. */
const day = /^(?:.*_)?(\d{4})-?(\d\d)-?(\d\d)$/

/**
 * Files and a mapping as what statistics offices publish is read: where no column is the value, and columns are the days
 * of vintages, each cell is a value of that vintage, and an empty one is none.
 */
export function unfolded<Mapping extends SourceMapping>(given: OwnFiles, mapping: Mapping) {
  const { value = 'value', vintage = 'vintage', components } = mapping
  const has = (name: string): boolean => given.columns.some((one) => one.name === name)
  const days = given.columns.filter(({ name }) => day.test(name))
  if (days.length === 0 || given.format === 'json' || components || has(value) || has(vintage))
    return { given, mapping }
  const type = days.some((one) => one.type === 'VARCHAR') ? 'VARCHAR' : 'DOUBLE'
  const cells = days.map(({ name }) => {
    return `{'day': ${quote(name.replace(day, '$1-$2-$3'))}, 'told': CAST(${quoteName(name)} AS ${type})}`
  })
  const rest = given.columns.filter((one) => !days.includes(one))
  const names = rest.map(({ name }) => `${quoteName(name)}, `).join('')
  const rows = `SELECT ${names}row_number() OVER () AS own_row, unnest([${cells.join(', ')}]) AS cell FROM ${given.relation}`
  const relation = `(SELECT ${names}own_row, cell.day AS ${quoteName(vintage)}, cell.told AS ${quoteName(value)} FROM (${rows}) WHERE cell.told IS NOT NULL)`
  const columns = [...rest, { name: vintage, type: 'VARCHAR' }, { name: value, type }]
  return { given: { ...given, relation, columns, row: 'own_row' }, mapping: { ...mapping, value, vintage } }
}
