/*
 * What a points file means, written down again from the page of its format: nothing here may come from src.
 */

/** SQL of when the provider says that it computed a stored point; NULL where it does not say. */
export const computedByFormat =
  "CASE WHEN computed_at IS NOT NULL THEN computed_at WHEN basis = 'provider' THEN available_at ELSE NULL END"

/** SQL of the instant at which the rule alone would call a stored point known. */
export const ruledByFormat = 'CASE WHEN available_rule_at IS NOT NULL THEN available_rule_at ELSE available_at END'
