import type { Engine } from '../store/engine.ts'
import { columnsMark, tableColumns } from './columns.ts'
import { datedColumns, type LayerPlan, type Layers, writeDated } from './layers.ts'
import type { Constants } from './lines.ts'
import { asOf } from './finished-poll.ts'
import { type Drafting, fileName, listAgain, stageLines } from './staging.ts'

/** Makes the dated tables of a whole state; gives the layers that each is made of. */
export async function datedTables(drafting: Drafting): Promise<Record<string, Layers>> {
  const { finished, memory, change, state, date, ticket } = drafting
  const { lines, poll, whole } = finished
  const { layers, last } = state
  const next: Record<string, Layers> = {}
  const constants: Constants = {
    snapshot_date: date,
    observed_at: ticket.committed_at,
    ...asOf(finished),
    source: whole,
  }
  const id = fileName(drafting)
  const plans = writeDated(lines, { poll, change, memory, layers, lastAt: last?.observed_at ?? 0 })
  await drafting.context.withEngine(async (engine) => {
    for (const plan of plans) {
      const made = await layer(drafting, engine, plan, layers[plan.table])
      if (made) next[plan.table] = made
    }
    manifest(drafting, next)
    await stageLines(drafting, engine, { table: 'snapshots', lines: 'snapshots', id, date: null, constants, meta: {} })
  })
  return next
}

function manifest(drafting: Drafting, layers: Readonly<Record<string, Layers>>): void {
  for (const [resource, { base, delta, rows }] of Object.entries(layers)) {
    drafting.finished.lines.add('snapshots', { resource, base: layerName(base), delta: layerName(delta), rows })
    for (const path of [base, delta]) if (path !== null) listAgain(drafting, resource, path)
  }
}

function layerName(path: string | null): string | null {
  const name = path?.split('/').at(-1)
  return name?.replace(/\.parquet$/, '') ?? null
}

async function layer(
  drafting: Drafting,
  engine: Engine,
  plan: LayerPlan,
  held: Layers | undefined,
): Promise<Layers | null> {
  const { table, kind, rows, lines } = plan
  if (kind === 'same') return held ? { ...held, rows } : null
  const { finished, ticket, date, context } = drafting
  const id = `${fileName(drafting)}-${kind}`
  const constants: Constants = {
    layer: id,
    ...asOf(finished),
    observed_at: ticket.committed_at,
  }
  const meta = { layer: kind, columns: columnsMark(tableColumns(table, context.resources)) }
  const made = lines.startsWith('history.') ? datedColumns(table, context.resources) : {}
  const staged = await stageLines(drafting, engine, { table, lines, id, date, constants, made, meta })
  if (kind === 'delta') return held ? { ...held, delta: staged?.path ?? held.delta, rows } : null
  return staged ? { base: staged.path, base_at: ticket.committed_at, delta: null, rows } : null
}
