import { readFileSync } from 'node:fs'
import { programName } from '../../src/interfaces/cli/process.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, quote, type Row } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { commitDeps } from './lakes/drafts.ts'
import { catalogue } from './sandbox-client.ts'

/** Builds the views of a lake. */
export async function makeViews(root: string, options: Partial<Parameters<typeof buildViews>[1]> = {}) {
  using ledger = await Ledger.open(root)
  return await buildViews(ledger, { catalogue, deps: commitDeps({ program: programName() }), ...options })
}

/** The three ways to the objects of a lake; the prefix stands before their names. */
export const ways = ['open', 'attach', 'script'] as const

/** Opens the views of a lake in one of the ways, runs the work, closes. */
export async function withViews<T>(
  root: string,
  work: (engine: Engine, prefix: string) => Promise<T>,
  way: (typeof ways)[number] = 'open',
): Promise<T> {
  const database = inLake(root, places.database)
  using engine = way === 'open' ? await Engine.open(database, { readOnly: true, threads: 2 }) : await Engine.open()
  if (way === 'attach') await engine.run(`ATTACH ${quote(database)} AS lake (READ_ONLY)`)
  if (way === 'script') await engine.run(readFileSync(inLake(root, places.script), 'utf8'))
  return await work(engine, way === 'attach' ? 'lake.' : '')
}

/** The rows as sorted lines of JSON: a multiset that can be compared. */
export function multiset(rows: readonly Row[]): string[] {
  return rows.map((row) => JSON.stringify(row, (_, value: unknown) => exact(value))).toSorted()
}

function exact(value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return Object.is(value, -0) ? '-0' : value
}
