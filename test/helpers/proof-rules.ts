import { readFileSync } from 'node:fs'

/** Decisions `d`, what was known of one metric at them `j`, and `n` with assets that may be NULL. */
export const grid = `WITH d AS (SELECT ts, asset FROM calendar('2024-02-01', '2024-10-01', INTERVAL 1 DAY), (VALUES ('BTC'), ('ETH')) a (asset)),
  j AS (FROM pit_join('d', 'm', '24h')),
  n AS (SELECT ts, CASE WHEN v > 1 THEN asset END AS asset, v FROM j)`

/** The query, which may read those. */
export function onGrid(sql: string): string {
  return /^(?:SELECT|FROM) .*\b[djn]\b/s.test(sql) ? `${grid} ${sql}` : sql
}

/** A rule, a query that it proves, its twin that looks ahead, and what is said to stand in the way there. */
export const proofRules = ['rules', 'groups'].flatMap((name) => {
  const [, ...rules] = readFileSync(new URL(`../golden/proof/${name}.sql`, import.meta.url), 'utf8')
    .trim()
    .split('\n\n')
  return rules.map((text) => {
    const [, rule = '', honest = '', leak = '', obstacle = ''] = /^-- (.*)\n(.*);\n(.*); -- (.*)$/.exec(text) ?? []
    return [rule, honest, leak, new RegExp(obstacle)] as const
  })
})
