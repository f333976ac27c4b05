import { fileOf } from './conversion.ts'
import { beyondDouble } from './shape.ts'
import { statement } from './sql.ts'
import { bodySql, forget, gridOf, type Loading, statsOf } from './stage.ts'
import { quoteList } from '../store/engine.ts'

/** Stages what is left, value by value; what is wrong with a body becomes its reason. */
export async function loadByValue(loading: Loading, bodies: readonly number[]): Promise<void> {
  const { engine, circumstances, poison, staged } = loading
  if (bodies.length === 0) return
  await engine.run(statement('by_value_raw'))
  await fillTable(loading, bodies)
  await engine.run(statement('shapes'))
  await engine.run(statement('by_value', { ...gridOf(circumstances), beyond_double: String(beyondDouble) }))
  for (const { body, fault, faults } of await engine.rows<FaultRow>(statement('faults')))
    poison.set(body, faults > 1n ? `${fault} (and ${faults - 1n} more)` : fault)
  await engine.run('DROP TABLE by_value_raw')
  await forget(
    engine,
    'by_value',
    bodies.filter((body) => poison.has(body)),
  )
  for (const [body, found] of await statsOf(loading, 'by_value')) staged.set(body, found)
}

type FaultRow = { readonly body: number; readonly fault: string; readonly faults: bigint }

/** All at once where that works; else one by one, so that DuckDB's refusal of one spares the others. */
async function fillTable(loading: Loading, bodies: readonly number[]): Promise<void> {
  const { engine, files, copies, poison } = loading
  const fill = (some: readonly number[]): Promise<number> => {
    const paths = some.map((body) => copies.get(body) ?? fileOf(files, body))
    return engine.run(statement('by_value_load', { body: bodySql(some), files: quoteList(paths) }))
  }
  try {
    await fill(bodies)
  } catch {
    for (const body of bodies) {
      try {
        await fill([body])
      } catch (error) {
        poison.set(body, plainWords(error, copies.get(body) ?? fileOf(files, body)))
      }
    }
  }
}

/** DuckDB's complaint without its advice and without the path of the spool file. */
function plainWords(error: unknown, file: string): string {
  const first = String(error instanceof Error ? error.message : error).split('\n')[0] ?? ''
  if (first.includes('maximum_object_size')) return 'a point of more than 16 MB'
  return first
    .replace(/^[\w ]*Error: /, '')
    .replaceAll(/ in file "[^"]*"/g, '')
    .replaceAll(file, 'the body')
    .slice(0, 300)
}
