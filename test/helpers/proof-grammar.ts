/*
 * Random queries over a small lake, honest ones and leaks of every kind. Each relation has the columns ts, asset and x,
 * so that any can stand in any; values are whole numbers and orders are total, so that a query has one answer.
 */

class Drawing {
  readonly random: () => number

  constructor(random: () => number) {
    this.random = random
  }

  readonly one = <T>(...choices: readonly T[]): T => choices[Math.floor(this.random() * choices.length)] as T
  readonly day = (): string => `2024-01-${String(2 + Math.floor(this.random() * 12)).padStart(2, '0')}`
  readonly instant = (): string => `TIMESTAMPTZ '${this.day()} ${this.one('00:00:00', '06:00:00', '12:30:00')}+00'`
  readonly step = (): string => this.one(`INTERVAL 1 DAY`, `INTERVAL '2 hours'`, `INTERVAL 36 HOUR`)
  readonly total = (key: string): string => `${key}, asset, x, ts`
  /** When a point may be used at an instant; some of them are too early. */
  readonly known = (clock: string, at: string): string =>
    this.one(
      `${clock} <= ${at}`,
      `${at} >= ${clock}`,
      `${clock} < ${at}`,
      `${clock} <= ${at} - ${this.step()}`,
      `${clock} BETWEEN ${at} - ${this.step()} AND ${at}`,
      `${clock} <= ${at}`,
      `${clock} <= ${at} + ${this.step()}`,
      `${clock} > ${at}`,
      `p.t <= ${at}`,
      `p.t = ${at}`,
      `date_trunc('day', ${clock}) <= ${at}`,
      `${clock} <= date_trunc('day', ${at})`,
      `(${clock} <= ${at} OR p.v > 3)`,
      `${clock} <= ${at} AND p.v > 2`,
    )

  readonly honestInstant = (): string =>
    this.one(
      'available_at',
      `available_at + ${this.step()}`,
      `greatest(available_at, ${this.instant()})`,
      `date_trunc('day', available_at) + INTERVAL 1 DAY`,
      `CAST(available_at AS DATE) + 1`,
    )
  readonly anyInstant = (): string =>
    this.one(
      this.honestInstant(),
      this.honestInstant(),
      't',
      `available_at - ${this.step()}`,
      `date_trunc('day', available_at)`,
      `least(available_at, ${this.instant()})`,
      `coalesce(available_at, t)`,
      `greatest(t, ${this.instant()})`,
      `CASE WHEN v > 3 THEN t ELSE available_at END`,
      `CAST(available_at AS DATE)`,
    )

  base(): string {
    return this.one(
      () => `SELECT available_at AS ts, asset, v AS x FROM points`,
      () => `SELECT available_at AS ts, asset, v AS x FROM points WHERE metric = 'm'`,
      () =>
        `SELECT valid_from AS ts, id AS asset, ${this.one('1', '1', 'CASE WHEN epoch_us(valid_to) > 0 THEN 1 ELSE 2 END')} AS x FROM history.products`,
      () =>
        `SELECT ts, asset, 1 AS x FROM calendar('${this.day()}', '2024-01-15', '12 hours'), (VALUES ('A'), ('B')) AS a (asset)`,
      () =>
        `SELECT ts, asset, 1 AS x FROM calendar('2024-01-02', '2024-01-15', '1 day'), (VALUES ('A'), ('B'), (NULL)) AS a (asset)`,
      () =>
        `SELECT CAST(${this.anyInstant()} AS TIMESTAMPTZ) AS ts, asset, v AS x FROM points WHERE metric = '${this.one('m', 'n')}'`,
      () =>
        `SELECT ${this.one('valid_from', 'valid_from', 'valid_to')} AS ts, id AS asset, CASE status WHEN 'active' THEN 1 ELSE 2 END AS x FROM history.products`,
    )()
  }

  /** A relation in FROM. */
  readonly from = (depth: number): string => `(${this.relation(depth + 1)})`

  joins(depth: number): string {
    const match = `p.asset = k.asset AND ${this.known('p.available_at', 'k.ts')}`
    return this.one(
      () =>
        `WITH k AS ${this.from(depth)} SELECT ts, asset, coalesce(v, 0) + coalesce(x, 0) AS x FROM pit_join('k', 'm', '24h')`,
      () =>
        `WITH k AS ${this.from(depth)} SELECT ts, asset, coalesce(v, 0) AS x FROM pit_join('k', '${this.one('m', 'n')}', '24h', latency := '6 hours')`,
      () =>
        `SELECT k.ts, k.asset, sum(p.v) AS x FROM ${this.from(depth)} AS k ${this.one('LEFT', '', 'INNER')} JOIN points AS p ON ${match} GROUP BY k.ts, k.asset`,
      () =>
        `SELECT k.ts, k.asset, p.v AS x FROM ${this.from(depth)} AS k ${this.one('LEFT', 'RIGHT', 'FULL', 'INNER')} JOIN points AS p ON ${match}`,
      () =>
        `SELECT greatest(k.ts, p.available_at) AS ts, k.asset, p.v AS x FROM ${this.from(depth)} AS k JOIN points AS p ON p.asset = k.asset`,
      () =>
        `SELECT k.ts, k.asset, k.x FROM ${this.from(depth)} AS k ${this.one('SEMI', 'ANTI')} JOIN points AS p ON ${match}`,
      () =>
        `SELECT k.ts, k.asset, k.x FROM ${this.from(depth)} AS k WHERE ${this.one('', 'NOT ')}EXISTS (FROM points AS p WHERE ${match})`,
      () =>
        `SELECT k.ts, k.asset, k.x FROM ${this.from(depth)} AS k WHERE k.asset ${this.one('', 'NOT ')}IN (SELECT p.asset FROM points AS p WHERE ${this.known('p.available_at', 'k.ts')})`,
      () =>
        `SELECT k.ts, k.asset, k.x FROM ${this.from(depth)} AS k WHERE k.asset ${this.one('', 'NOT ')}IN (SELECT CASE WHEN v > 2 THEN asset END FROM points)`,
      () =>
        `SELECT k.ts, k.asset, k.x FROM ${this.from(depth)} AS k WHERE (k.asset, k.ts) ${this.one('', 'NOT ')}IN (SELECT asset, ts FROM ${this.from(depth)})`,
      () =>
        `SELECT k.ts, k.asset, (SELECT ${this.one('sum', 'max', 'count')}(p.v) FROM points AS p WHERE ${match}) AS x FROM ${this.from(depth)} AS k`,
      () => `SELECT k.ts, k.asset, p.v AS x FROM ${this.from(depth)} AS k ASOF LEFT JOIN (SELECT asset, ${this.one('available_at', 't')} AS at, max(v) AS v FROM points GROUP BY ALL) AS p
        ON p.asset = k.asset AND ${this.one('k.ts >= p.at', 'k.ts > p.at', 'k.ts <= p.at')}`,
      () =>
        `SELECT k.ts, k.asset, j.x FROM ${this.from(depth)} AS k LEFT JOIN LATERAL (SELECT p.v AS x FROM points AS p WHERE ${match} ORDER BY p.t ${this.one('DESC', '')}, p.metric, p.v LIMIT 1) AS j ON true`,
      () =>
        `SELECT k.ts, k.asset, j.x FROM ${this.from(depth)} AS k JOIN ${this.from(depth)} AS j ON j.asset = k.asset AND j.ts ${this.one('<=', '=', '>=', '<')} k.ts`,
      () => `SELECT k.ts, k.asset, count(h.id) AS x FROM ${this.from(depth)} AS k LEFT JOIN history.products AS h
        ON ${this.one('h.valid_from <= k.ts AND k.ts < h.valid_to', 'h.valid_from <= k.ts', 'k.ts < h.valid_to', `h.valid_from <= k.ts AND h.valid_to = 'infinity'`)} GROUP BY ALL`,
      () =>
        `WITH k AS ${this.from(depth)} SELECT ts, asset, count(*) AS x FROM pit_universe('k') ${this.one('', `WHERE status = 'active'`)} GROUP BY ts, asset`,
    )()
  }

  windows(depth: number): string {
    const call = this.one(
      'sum(x)',
      'max(x)',
      'count(*)',
      'lag(x)',
      'lag(x, 2)',
      'lead(x)',
      'lag(x, -1)',
      'first_value(x)',
      'last_value(x)',
      'rank()',
      'row_number()',
      'ntile(2)',
      'nth_value(x, 2)',
      'count(*) FILTER (x > 1)',
      'dense_rank()',
      'percent_rank()',
    )
    const partition = this.one(
      '',
      'PARTITION BY asset',
      'PARTITION BY asset',
      'PARTITION BY ts',
      `PARTITION BY date_trunc('day', ts)`,
    )
    const order = this.one(
      this.total('ts'),
      this.total('ts'),
      this.total('ts'),
      this.total('ts DESC'),
      this.total('x'),
      this.total(`date_trunc('day', ts)`),
      this.total('ts NULLS FIRST'),
      '',
    )
    const frame = this.one(
      '',
      '',
      'ROWS BETWEEN 2 PRECEDING AND CURRENT ROW',
      'ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING',
      'ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING',
      'ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING',
      'ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING',
      'ROWS BETWEEN 3 PRECEDING AND -1 PRECEDING',
    )
    const range = this.one(
      'RANGE BETWEEN INTERVAL 2 DAY PRECEDING AND CURRENT ROW',
      'RANGE BETWEEN INTERVAL 2 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING',
      'RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL 1 DAY PRECEDING',
    )
    const aggregate = /^(?:sum|max|count|first|last|nth)/.test(call)
    // Where rows stand before one another by chance no frame of rows has one answer.
    const spec =
      order === ''
        ? partition
        : `${partition} ORDER BY ${aggregate && this.random() < 0.3 ? `ts ${range}` : `${order} ${aggregate ? frame : ''}`}`
    const ordered = order !== '' || /^(?:sum|max|count)/.test(call)
    const value = ordered && !(spec.includes('ORDER BY ts RANGE') && /value/.test(call)) ? call : 'sum(x)'
    const select = `SELECT ts, asset, ${value} OVER (${spec}) AS x FROM ${this.from(depth)}`
    return this.random() < 0.2
      ? `SELECT ts, asset, x FROM ${this.from(depth)} QUALIFY row_number() OVER (PARTITION BY asset ORDER BY ${this.one(this.total('ts'), this.total('ts DESC'))}) <= 2`
      : select
  }

  groups(depth: number): string {
    return this.one(
      () =>
        `SELECT ts, asset, ${this.one('sum', 'max', 'count', 'min')}(x) AS x FROM ${this.from(depth)} GROUP BY ts, asset`,
      () => `SELECT ts, 'A' AS asset, sum(x) AS x FROM ${this.from(depth)} GROUP BY ts`,
      () =>
        `SELECT date_trunc('day', ts) + INTERVAL 1 DAY AS ts, asset, sum(x) AS x FROM ${this.from(depth)} GROUP BY ALL`,
      () => `SELECT date_trunc('day', ts) AS ts, asset, sum(x) AS x FROM ${this.from(depth)} GROUP BY ALL`,
      () =>
        `SELECT ${this.one('max', 'min')}(ts) AS ts, asset, ${this.one('sum(x)', 'count(*)', '1')} AS x FROM ${this.from(depth)} GROUP BY asset`,
      () => `SELECT DISTINCT ts, asset, ${this.one('x', '1 AS x')} FROM ${this.from(depth)}`,
      () =>
        `SELECT DISTINCT ON (${this.one('asset', 'ts', 'ts, asset')}) ts, asset, x FROM ${this.from(depth)} ORDER BY ${this.one(this.total('ts'), this.total('ts DESC'), this.total('x'))}`,
      () =>
        `SELECT ts, asset, x FROM ${this.from(depth)} ORDER BY ${this.one(this.total('ts'), this.total('ts'), this.total('ts DESC'), this.total('x'))} LIMIT ${this.one('3', '5', '1', '10%')}`,
      () =>
        `SELECT ts, asset, x FROM ${this.from(depth)} ORDER BY ${this.one(this.total('ts'), this.total('ts DESC NULLS FIRST'))} LIMIT 4 OFFSET 2`,
      () =>
        `SELECT ts, asset, (SELECT ${this.one('max(x)', 'count(*)')} FROM ${this.from(depth)} WHERE ts <= ${this.instant()}) AS x FROM ${this.from(depth)} WHERE ts ${this.one('>=', '>=', '<')} ${this.instant()}`,
      () => `SELECT ts, asset, max(x) AS x FROM ${this.from(depth)} GROUP BY ROLLUP (ts, asset)`,
    )()
  }

  others(depth: number): string {
    return this.one(
      () =>
        `SELECT ts, asset, x FROM ${this.from(depth)} WHERE ${this.one('x > 1', `asset = 'A'`, `ts >= ${this.instant()}`, 'x IS NULL', `ts <= ${this.instant()}`, 'asset IS NOT NULL')}`,
      () => `SELECT ts ${this.one('+', '+', '-')} ${this.step()} AS ts, asset, x FROM ${this.from(depth)}`,
      () =>
        `SELECT ts, asset, x FROM ${this.from(depth)} ${this.one('UNION ALL', 'UNION', 'EXCEPT', 'EXCEPT ALL', 'INTERSECT', 'INTERSECT ALL')} SELECT ts, asset, x FROM ${this.from(depth)}`,
      () =>
        `SELECT ts, asset, x FROM ${this.from(depth)} UNION ALL BY NAME SELECT x, asset, ts FROM ${this.from(depth)}`,
      () => `SELECT ts, asset, unnest([x, ${this.one('1', 'x + 1')}]) AS x FROM ${this.from(depth)}`,
      () =>
        `WITH c AS ${this.from(depth)} SELECT a.ts, a.asset, b.x FROM c AS a ${this.one('', 'LEFT')} JOIN c AS b ON b.asset = a.asset AND b.ts ${this.one('=', '<=', '<', '>')} a.ts`,
      () =>
        `SELECT ts, asset, CASE WHEN x > 2 THEN lead(x) OVER (ORDER BY ${this.total('ts')}) ELSE x END AS x FROM ${this.from(depth)}`,
      () => `SELECT ts, asset, coalesce(x, 0) + 1 AS x FROM ${this.from(depth)}`,
      () => `SELECT ts, asset, (SELECT count(*) FROM series) AS x FROM ${this.from(depth)}`,
      () =>
        `SELECT ts, 'A' AS asset, r AS x FROM ${this.from(depth)} AS k, range(CAST(coalesce(least(x, 2), 0) AS BIGINT)) AS g (r)`,
    )()
  }

  relation(depth: number): string {
    if (depth > 3 || this.random() < 0.3 + 0.15 * depth) return this.base()
    return this.one(
      () => this.base(),
      () => this.joins(depth),
      () => this.joins(depth),
      () => this.windows(depth),
      () => this.groups(depth),
      () => this.others(depth),
    )()
  }

  query(): string {
    return this.one(
      () => this.joins(0),
      () => this.windows(0),
      () => this.groups(0),
      () => this.others(0),
    )()
  }
}

/** Draws one query; the same numbers give the same query. */
export const randomQuery = (random: () => number): string => new Drawing(random).query()
