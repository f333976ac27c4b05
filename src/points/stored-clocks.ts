/**
 * Points files say an instant once. `computed_at` is NULL where it is the `available_at` of a point with basis
 * `provider`, and `available_rule_at` is NULL where it is `available_at`: what is equal costs nothing on disk.
 */

/** SQL of when the provider says that it computed a stored point; NULL where it does not say. `of` names the relation. */
export function computedSql(of = ''): string {
  const from = of === '' ? '' : `${of}.`
  return `coalesce(${from}computed_at, CASE WHEN ${from}basis = 'provider' THEN ${from}available_at END)`
}

/** SQL of the instant by which a stored point counts as known while the rule stands in for backfilled points. */
export function ruledSql(of = ''): string {
  const from = of === '' ? '' : `${of}.`
  return `coalesce(${from}available_rule_at, ${from}available_at)`
}
