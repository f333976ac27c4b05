import { vintageWords } from './joins-vintages.ts'
import { quote } from '../../lake/store/engine.ts'
import type { ObjectText } from './template.ts'

/**
 * Rewrites the view `points` for a lake in which points of these metrics may have several vintages: it shows their last
 * known vintage, and every point of other metrics. Any other object is unchanged, and so is the view if there are no
 * such metrics.
 */
export function lastVintagesIn(object: ObjectText, revisable: readonly string[]): ObjectText {
  if (revisable.length === 0 || object.kind !== 'view' || object.name !== 'points') return object
  const { body, text } = object
  const names = `(${revisable.map(quote).join(', ')})`
  const both = `${body}
  AND stored.metric NOT IN ${names}
UNION ALL
${body}
  AND stored.metric IN ${names}
{{part last_vintage}}`
  return { ...object, body: both, text: text.replace(body, () => both) }
}

/**
 * Phrases for notes on revisable metrics: why nothing was known, and since when anything was, from the first vintages.
 */
export function vintageNotes(revisable: readonly string[], vintages: () => string) {
  const pointKey = 'metric, asset, "interval", currency, exchange, network, t, available_at'
  return {
    before_first_code: (path: string) => {
      const revised = vintageWords(revisable).isRevised(path)
      const strict = `coalesce(CAST(getvariable('backfill') AS VARCHAR), '') <> 'rule'`
      const never = `CASE WHEN ${revised} AND ${strict} THEN 'never-observed' ELSE 'before-first' END`
      return revised === null ? `'before-first'` : never
    },
    points_and_vintages: () =>
      revisable.length === 0
        ? '_pit_points'
        : `(SELECT ${pointKey} FROM _pit_points UNION ALL
    SELECT ${pointKey} FROM (${vintages()}) AS v WHERE v.metric IN (SELECT metric FROM _pit_points))`,
  }
}
