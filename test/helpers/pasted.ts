/** Files that an attack tries to write into a lake and the text that tells that it read past `as_of`. */
export interface PastedPrey {
  /** A path in the lake at which no file may come to be. */
  readonly file: string
  /** What the attack answers if it runs: nothing else in any answer contains it. */
  readonly proof: string
}

/** The options of a join whose value an attack can choose freely. */
export const pastedOptions = ['currency', 'exchange', 'network', 'component'] as const

/** Every word that has once stood for a part of a statement, and a value that stands for none. */
export const pastedWords = ['?decisions', '?metrics', '?interval', '?options', '?paths', '{decisions}', '$1'] as const

/**
 * What an attack does: it writes a file of the lake, exchanges a view under the next client, or tells what came after
 * `as_of`.
 */
export const pastedDeeds = ['writes', 'defines', 'tells'] as const
type PastedDeed = (typeof pastedDeeds)[number]

/**
 * A question whose join names a placeholder as the value of an option, and whose decisions hold the rest of a statement
 * in a text constant: if anything fills the one with the other, the constant ends the quote and runs. Nothing reads the
 * join.
 */
export function pastedQuestion(option: string, word: string, deed: PastedDeed, { file, proof }: PastedPrey): string {
  const deeds: Readonly<Record<PastedDeed, string>> = {
    writes: `COPY (SELECT 1 AS a) TO $q$${file}$q$ (FORMAT csv)`,
    defines: `CREATE OR REPLACE VIEW series AS SELECT $q$${proof}$q$ AS metric`,
    tells: 'RESET VARIABLE as_of',
  }
  const told = `SELECT $q$${proof}$q$ || (SELECT max(t) FROM points), 1, $q$2030-01-01$q$`
  const rest = `SELECT u.metric, 1 AS decisions, u.metric AS since
    FROM (SELECT 1 AS n, 1 AS asset, now() AS ts, now() AS known) AS o JOIN (SELECT $q$x$q$ AS metric, 1 AS asset, now() AS since, now() AS until) AS u --`
  const payload = `[1:0] || $q$native$q$) AS u ON true GROUP BY u.metric UNION ALL ${told}; ${deeds[deed]}; ${rest}`
  return `WITH d AS (SELECT '${payload}' AS asset, CAST('2030-01-01' AS TIMESTAMP) AS ts),
    j AS (SELECT * FROM pit_join('d', 'supply/current_pit', '24h', ${option} := '${word}'))
    SELECT CAST('2024-02-01' AS TIMESTAMPTZ) AS ts, 1 AS one`
}
