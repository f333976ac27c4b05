/** Where the statements of the grammar try to read and write. */
export interface Prey {
  /** A file outside the lake that must not be read. */
  readonly secret: string
  /** A path outside the lake that must not come to be. */
  readonly outside: string
  /** A path inside the lake that must not, either. */
  readonly inside: string
}

const text = (sql: string): string => `'${sql.replaceAll("'", "''")}'`
const gaps = [' ', '\n', '\t', '/**/', '/* ; */', ' --\r', ' --\n', '\r', '\u00A0', ' -- ;\n']
const readers = ['read_text', 'read_csv', 'read_blob', 'glob', 'read_json', 'sniff_csv', 'read_parquet']
/** Statements of honest and of hostile parts, hidden in comments, texts, names, macros, views and one another. */
export function statementFrom(random: () => number, prey: Prey): string {
  const one = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T
  const path = (): string => one(prey.outside, prey.inside, `${prey.inside}/../../x`, prey.secret)
  const to = (): string => text(path())
  const cased = (word: string): string => one(word, word.toUpperCase(), `"${word}"`, `system.main.${word}`)
  const gap = (): string => one(...gaps)
  const log = (): string => `${cased('enable_logging')}(storage = 'file', storage_config = {'path': ${to()}})`
  const read = (): string => `${cased(one(...readers))}(${to()})`
  function table(depth: number): string {
    if (depth > 3) return one('points', 'range(3)', 'series')
    return one(
      () => one('points', 'series', 'products', 'range(3)', 'universe', 'duckdb_views()', `query_table('series')`),
      () => one('points', '(SELECT 1 AS a)', `pit_long('ask', ['indicators/one'], '24h')`, 'mine', 'seen', 'trap()'),
      () => log(),
      () => read(),
      () => text(path()),
      () => `${cased('query')}(${text(query(depth + 1))})`,
      () => `query_table(${text(one('points', path(), log(), query(depth + 1)))})`,
      () => `(${query(depth + 1)})`,
      () => `json_execute_serialized_sql(json_serialize_sql(${text(query(depth + 1))}))`,
      () => `(${one('DESCRIBE', 'SUMMARIZE', 'EXPLAIN', 'EXPLAIN ANALYZE')} ${query(depth + 1)})`,
      () => `(${statement(depth + 1)})`,
      () => one('duckdb_settings()', 'duckdb_temporary_files()', 'truncate_duckdb_logs()', 'force_checkpoint()'),
    )()
  }
  function value(depth: number): string {
    return one(
      () => one('1 AS a', '2 AS a', 'NULL AS a', 'count(*) AS a'),
      () => one('1', '2', 'NULL'),
      () => `(SELECT count(*)${gap()}FROM${gap()}${table(depth + 1)})`,
      () => `current_setting(${text(one('temp_directory', 'TimeZone', 'allowed_directories', 'secret_directory'))})`,
      () => one('write_log(1)', `getenv('HOME')`, `getvariable('x')`, `json_serialize_plan(${text(query(depth + 1))})`),
      () => `list_transform([1], lambda x: (SELECT max(1) FROM ${table(depth + 1)}))`,
    )()
  }
  function query(depth: number): string {
    const g = gap()
    return one(
      () => `SELECT${g}${value(depth)}${g}FROM${g}${table(depth)}`,
      () => `FROM${g}${table(depth)}`,
      () => `WITH c AS ${one('', 'MATERIALIZED ')}(${query(depth + 1)}) SELECT 1 FROM c,${g}${table(depth)}`,
      () => `SELECT ${value(depth)} UNION ALL BY NAME SELECT ${value(depth)} FROM ${table(depth)}`,
      () => `SELECT 1 FROM points p JOIN LATERAL (${query(depth + 1)}) l ON true`,
      () => `PIVOT (${query(depth + 1)}) ON a ${one('', 'IN (1)')} USING count(*)`,
    )()
  }
  function statement(depth: number): string {
    const g = gap()
    const another = (): string => (depth > 2 ? 'SELECT 1' : statement(depth + 1))
    return one(
      () => query(depth),
      () => `FROM${g}${one(log(), read(), text(path()), `query(${text(`FROM ${one(log(), read())}`)})`)}`,
      () => `SELECT (SELECT count(*) FROM ${one(log(), read())}) AS a FROM points`,
      () => `COPY (${query(depth + 1)}) TO ${to()}`,
      () => `COPY${g}points TO ${to()} (FORMAT parquet)`,
      () => `ATTACH ${to()} AS other`,
      () => `EXPORT DATABASE ${to()}`,
      () => `IMPORT DATABASE ${to()}`,
      () => `CREATE OR REPLACE TEMP TABLE mine${g}AS ${query(depth + 1)}`,
      () => `CREATE OR REPLACE TEMP TABLE mine (a INTEGER DEFAULT (${value(depth)}))`,
      () => `CREATE TABLE mine AS ${query(depth + 1)}`,
      () => `CREATE OR REPLACE TEMP VIEW seen AS ${query(depth + 1)}`,
      () => `CREATE OR REPLACE TEMP MACRO trap() AS TABLE ${query(depth + 1)}`,
      () => `CREATE OR REPLACE TEMP MACRO trap(a := ${value(depth)}) AS ${value(depth)}, (b) AS ${value(depth)}`,
      () => `INSERT INTO mine${g}${query(depth + 1)}`,
      () => `UPDATE mine SET a = ${value(depth)} WHERE ${value(depth)} IS NULL`,
      () => `DELETE FROM mine WHERE a = ${value(depth)}`,
      () => `SET VARIABLE x${g}=${g}${value(depth)}`,
      () => one('SET enable_external_access = true', `SET temp_directory = ${to()}`, 'RESET lock_configuration'),
      () => one('PRAGMA enable_logging', `PRAGMA profile_output = ${to()}`, 'CHECKPOINT', 'VACUUM', 'LOAD httpfs'),
      () => `CALL ${log()}`,
      () => `PREPARE p AS ${another()}; EXECUTE p`,
      () => `EXPLAIN ${one('', 'ANALYZE ', '(ANALYZE) ', '(FORMAT json) ')}${another()}`,
      () => `SELECT 1${g}; ${another()}${g}; SELECT 2${g}`,
      () => `SELECT 1 --${one('\r', '\n', '\u2028', '\0', '')}; COPY (SELECT 1) TO ${to()}; SELECT 2 --`,
      () => `BEGIN; ${another()}; ROLLBACK`,
    )()
  }
  return statement(0)
}
