import { goldenQueries } from './golden-queries.ts'

/** Decisions `d`, what was known of one metric at them `j`, and `n` with assets that may be NULL. */
export const grid = `WITH d AS (SELECT ts, asset FROM calendar('2024-02-01', '2024-10-01', INTERVAL 1 DAY), (VALUES ('BTC'), ('ETH')) a (asset)),
  j AS (FROM pit_join('d', 'm', '24h')),
  n AS (SELECT ts, CASE WHEN v > 1 THEN asset END AS asset, v FROM j)`

/** The query, which may read those. */
export const onGrid = (sql: string): string => (/^(?:SELECT|FROM) .*\b[djn]\b/s.test(sql) ? `${grid} ${sql}` : sql)

/** A rule, a query that it proves, its twin that looks ahead, and what is said to stand in the way there. */
export const proofRules = ['rules', 'groups']
  .flatMap((name) => goldenQueries(`proof/${name}`))
  .map(({ what, queries: [honest = '', leak = ''], note }) => [what, honest, leak, new RegExp(note)] as const)
