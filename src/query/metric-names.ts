import type { Engine } from '../store/engine.ts'
import { price } from './points.ts'

/** The names of all metrics that a query may ask for. */
export async function metricsOf(engine: Engine): Promise<readonly string[]> {
  const rows = await engine.rows<{ metric: string }>('SELECT metric FROM endpoints ORDER BY 1')
  return [...rows.map(({ metric }) => metric), price]
}
