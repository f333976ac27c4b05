import { endSql, type Sql } from '../base/intervals-sql.ts'
import type { Interval } from '../base/time.ts'
import type { Rule } from './availability.ts'
import { countedSeconds, ruleKinds } from './rule-kinds.ts'

/** SQL for the timestamp from which the point `t` counts as knowable; agrees with `availableAt`. */
export function availableSql(rules: readonly Rule[], t: Sql, interval: Interval): Sql {
  return byRule(rules, t, (rule) => instant(rule, t, interval))
}

/**
 * SQL for the timestamp of the rule in force if the API description states it, otherwise for the end of the interval.
 */
export function floorSql(rules: readonly Rule[], t: Sql, interval: Interval): Sql {
  return byRule(rules, t, (rule) => (rule.basis === 'stated' ? instant(rule, t, interval) : endSql(t, interval)))
}

/** SQL for the basis of the rule in force: `'stated'`, `'assumed'` or `'override'`. */
export function basisSql(rules: readonly Rule[], t: Sql): Sql {
  return byRule(rules, t, (rule) => `'${rule.basis}'`)
}

/** SQL condition: the rule in force takes precedence over the provider's own timestamp. */
export function trustedSql(rules: readonly Rule[], t: Sql): Sql {
  return byRule(rules, t, (rule) => (rule.trust === 'rule' ? 'true' : 'false'))
}

function instant(rule: Rule, t: Sql, interval: Interval): Sql {
  return ruleKinds[rule.kind].sql(t, endSql(t, interval), String(countedSeconds(rule)))
}

/** A timestamp later than every `t`. */
const always = 1_000_000_000_000

/**
 * Lists the rules as rows: each is in force for `t` in `[begins, ends)`, and each `t` belongs to exactly one of them.
 */
export function ruleRows(rules: readonly Rule[]) {
  let begins = -always
  return rules.map((rule) => {
    const ends = rule.until ?? always
    const { kind, basis } = rule
    const row = { begins, ends, kind, seconds: countedSeconds(rule), basis, trusted: rule.trust === 'rule' }
    begins = Math.max(begins, ends)
    return row
  })
}

/**
 * SQL for the timestamp from which `t`, whose interval ends at `close`, counts as knowable by the rule in the row's
 * columns.
 */
export function rowInstantSql(t: Sql, close: Sql): Sql {
  const branches = Object.entries(ruleKinds).map(([kind, { sql }]) => `WHEN '${kind}' THEN ${sql(t, close, 'seconds')}`)
  return `(CASE kind ${branches.join(' ')} END)`
}

/** Builds one expression if all rules give the same text, otherwise a CASE over their `until`. */
function byRule(rules: readonly Rule[], t: Sql, expression: (rule: Rule) => Sql): Sql {
  const open = rules.findIndex((rule) => rule.until === null)
  if (open === -1) throw new RangeError('a list of rules must end in one without `until`')
  const texts = rules.slice(0, open + 1).map(expression)
  const last = texts.at(-1) ?? 'NULL'
  if (texts.every((text) => text === last)) return last
  const branches = texts.slice(0, -1).map((text, i) => `WHEN ${t} < ${rules[i]?.until} THEN ${text}`)
  return `(CASE ${branches.join(' ')} ELSE ${last} END)`
}
