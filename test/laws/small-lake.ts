import { Engine } from '../../src/lake/store/engine.ts'

const cut = (clock: string): string =>
  `(getvariable('as_of') IS NULL OR ${clock} <= CAST(getvariable('as_of') AS TIMESTAMPTZ))`

/**
 * A lake of some rows in memory, with views and macros of the names that a lake has, each in the plainest form that the
 * rules of time allow: what `as_of` does to it is told here once more, from nothing of the program.
 */
export async function smallLake(random: () => number): Promise<Engine> {
  const engine = await Engine.open(':memory:', { threads: 1 })
  const at = (hours: number): string => `'${new Date(Date.UTC(2024, 0, 2) + hours * 3_600_000).toISOString()}'`
  const rows = ['m', 'n'].flatMap((metric) =>
    ['A', 'B'].flatMap((asset) =>
      Array.from({ length: 9 }, (_, i) => {
        const late = random() < 0.25 ? Math.floor(random() * 72) : 0
        const v = random() < 0.15 ? 'NULL' : String(1 + Math.floor(random() * 5))
        return `('${metric}', '${asset}', '24h', ${at(24 * i)}, ${at(24 * i + 24 + late)}, ${v})`
      }),
    ),
  )
  const steps = ['A', 'B', 'C'].flatMap((id) => {
    const starts = [...new Set(Array.from({ length: 3 }, () => Math.floor(random() * 240)))].toSorted((a, b) => a - b)
    return starts.map((hour) => `('${id}', ${at(hour)}, '${random() < 0.6 ? 'active' : 'retired'}')`)
  })
  await engine.run(`
    CREATE TABLE stored_points (metric VARCHAR, asset VARCHAR, "interval" VARCHAR, t TIMESTAMPTZ, available_at TIMESTAMPTZ, v BIGINT);
    INSERT INTO stored_points VALUES ${rows.join(', ')};
    CREATE TABLE stored_steps (id VARCHAR, polled TIMESTAMPTZ, status VARCHAR);
    INSERT INTO stored_steps VALUES ${steps.join(', ')};
    CREATE SCHEMA history;
    CREATE VIEW points AS SELECT * FROM stored_points WHERE ${cut('available_at')};
    CREATE VIEW series AS SELECT metric, asset, count(*) AS points FROM points GROUP BY ALL;
    CREATE VIEW lake_info AS SELECT 'x' AS lake, 1 AS version;
    CREATE VIEW history.products AS SELECT id, polled AS valid_from,
      coalesce(lead(polled) OVER (PARTITION BY id ORDER BY polled), TIMESTAMPTZ 'infinity') AS valid_to, status FROM stored_steps WHERE ${cut('polled')};
    CREATE MACRO calendar(since, until, step := '1 day') AS TABLE SELECT unnest(generate_series(CAST(since AS TIMESTAMPTZ),
      CAST(until AS TIMESTAMPTZ) - INTERVAL 1 MICROSECOND, CAST(step AS INTERVAL))) AS ts;
    CREATE MACRO pit_join(decisions, metric, "interval", latency := NULL) AS TABLE SELECT yours.*, found.* FROM query_table(decisions) AS yours
      LEFT JOIN LATERAL (SELECT p.t, p.available_at, p.v FROM points AS p WHERE p.asset = yours.asset AND p.metric = CAST(metric AS VARCHAR)
        AND p.available_at <= yours.ts - coalesce(CAST(latency AS INTERVAL), INTERVAL 0 DAY) ORDER BY p.t DESC LIMIT 1) AS found ON true;
    CREATE MACRO pit_universe(decisions) AS TABLE SELECT yours.*, v.id AS product_id, v.status FROM query_table(decisions) AS yours
      JOIN history.products AS v ON v.valid_from <= yours.ts AND yours.ts < v.valid_to`)
  return engine
}
