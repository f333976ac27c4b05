import { quote, quoteName } from '../store/engine.ts'

/** One column that a panel adds: a field of a metric's answer. */
export interface Cell {
  readonly metric: string
  readonly field: string
  readonly name: string
}

/** So many metrics are told apart at once: each costs every row a comparison, so that many take two steps. */
const few = 16
const together = 8

/**
 * The CTE `wide`, and what it needs: of answers, a row for each decision and metric, a row for each decision and a column
 * for each cell.
 */
export function wideSql(cells: readonly Cell[], metrics: readonly string[], answers: string, key: string): string {
  // A decision has one instant: with it among the keys the plan tells that nothing of a group is known later.
  if (metrics.length <= few)
    return table(
      'wide',
      [key, 'ts'],
      cells.map(({ metric, field, name }) => cell(`metric = ${quote(metric)}`, field, quoteName(name))),
      answers,
    )
  const place = new Map(metrics.map((metric, n) => [metric, n]))
  const names = metrics.map((metric, n) => `(${quote(metric)}, ${n})`).join(', ')
  const fields = [...new Set(cells.map(({ field }) => field))]
  const parts = fields.flatMap((field) =>
    Array.from({ length: together }, (_, n) => cell(`place % ${together} = ${n}`, field, `${field}_${n}`)),
  )
  const whole = cells.map(({ metric, field, name }) => {
    const n = place.get(metric) ?? 0
    return cell(`part = ${Math.floor(n / together)}`, `${field}_${n % together}`, quoteName(name))
  })
  const named = `${answers} JOIN (VALUES ${names}) AS places (name, place) ON metric = name`
  return [
    table('parts', [key, 'ts', `place // ${together} AS part`], parts, named),
    table('wide', [key, 'ts'], whole, 'parts'),
  ].join(',\n')
}

/** The one answer that meets a condition; not by FILTER, which makes rows of its own for each column. */
function cell(condition: string, field: string, name: string): string {
  return `max(CASE WHEN ${condition} THEN ${field} END) AS ${name}`
}

function table(name: string, keys: readonly string[], cells: readonly string[], from: string): string {
  const by = keys.map((_, n) => n + 1).join(', ')
  return [
    `${name} AS (`,
    `  SELECT ${keys.join(', ')},`,
    cells.map((one) => `    ${one}`).join(',\n'),
    `  FROM ${from}`,
    `  GROUP BY ${by}`,
    ')',
  ].join('\n')
}
