import type { Sql } from '../../base/intervals-sql.ts'
import { quote } from '../../lake/store/engine.ts'

/*
 * The joins over series that are stitched: the points of a metric asset with those of whatever it took over from, and
 * of what took it over. Only where a join is asked for that does its text tell of it.
 */

/** Whether a join follows renames: its option `follow_renames`. */
export const followsRenames = `coalesce(TRY_CAST(follow_renames AS BOOLEAN), false)`

/** Problem with that option, as a branch of a CASE. */
export const followRenamesMistake = `WHEN TRY_CAST(follow_renames AS BOOLEAN) IS NULL THEN error('follow_renames is true or false')`

/** Placeholder for the relation of the points in the text that follows renames. */
const place = '\u0003'

/** Builds the words of the text that follows renames, for a lake. */
export function identityWords(revisable: readonly string[]): Readonly<Record<string, () => string>> {
  // Under a later clock vintages may be known at one instant: then it is the order that they had.
  const order =
    ', make_timestamptz(row_number() OVER (PARTITION BY name, member, _id_key, t ORDER BY available_at, ' +
    'observed_at)) AS observed_at'
  return { body: () => place, vintage_order: () => (revisable.length > 0 ? order : '') }
}

/** Wraps the text of a relation of points in `stitched` if a join follows renames. */
export function withIdentity(stitched: string | undefined, text: Sql): Sql {
  if (stitched === undefined) return text
  const [before = '', behind = ''] = stitched
    .split(place)
    .map((piece) => `CASE WHEN ${followsRenames} THEN ${quote(piece)} END`)
  return `concat(${before}, ${text}, ${behind})`
}
