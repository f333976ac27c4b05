import { Engine } from '../../../src/lake/store/engine.ts'

const series = 'metric VARCHAR, asset VARCHAR, "interval" VARCHAR, currency VARCHAR, exchange VARCHAR, network VARCHAR'

/** The names and columns of a lake's views, without a lake: what a proof from the plan reads of one. */
export async function bareViews(): Promise<Engine> {
  const engine = await Engine.open(':memory:', { threads: 1 })
  const tables = {
    points: `${series}, t TIMESTAMPTZ, available_at TIMESTAMPTZ, observed_at TIMESTAMPTZ, v DOUBLE, o VARCHAR, basis VARCHAR`,
    price_usd: `${series}, t TIMESTAMPTZ, available_at TIMESTAMPTZ, v DOUBLE`,
    series: `${series}, first_t TIMESTAMPTZ, points BIGINT`,
    products: 'id VARCHAR, status VARCHAR, valid_from TIMESTAMPTZ',
    endpoints: 'metric VARCHAR, lag_seconds BIGINT',
    gaps: `${series}, since TIMESTAMPTZ, missing BIGINT`,
    lake_info: 'lake VARCHAR, version BIGINT',
    registry_events: 'polled_at TIMESTAMPTZ, op VARCHAR',
    links: 'metric_asset VARCHAR, product_id VARCHAR, ambiguous BOOLEAN, valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ',
    'history.assets': 'id VARCHAR, valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ, asset_class VARCHAR',
    'history.products':
      'id VARCHAR, valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ, op VARCHAR, closed_by VARCHAR, status VARCHAR',
  }
  await engine.run('CREATE SCHEMA history')
  for (const [name, columns] of Object.entries(tables)) await engine.run(`CREATE TABLE ${name} (${columns})`)
  return engine
}
