import { bytesOf, mega } from '../base/option-kinds.ts'
import { type Engine, quoteName } from '../lake/store/engine.ts'
import { keptMemory, memoryWith, requireMemory } from '../lake/store/memory.ts'
import type { Ready } from './gate.ts'
import { optionAt } from './note-texts.ts'
import { key, type PanelSpec, partSql } from './panel.ts'
import { runCancellable, type RunDeps, runScript } from './run.ts'

/** Bytes that a cell takes while it is made: its point, its decision, and the sorting of both. */
const cellBytes = 1024
/**
 * Bytes that each column takes while its rows pass, as a block in the engine and the texts of a chunk; and the minimum
 * for making a panel.
 */
const columnBytes = 0.6 * mega
const leastBytes = 32 * mega
/** Maximum number of metrics distinguished in one step. */
const together = 16

/**
 * Splits a panel that does not fit into memory: how many metrics and decisions are made at once. Undefined if it fits.
 */
function blocksOf(decisions: number, metrics: number, memory: number) {
  const cells = Math.floor(memory / cellBytes)
  if (decisions * metrics <= cells) return undefined
  return {
    metrics: Math.max(1, Math.min(together, Math.floor(cells / decisions))),
    decisions: Math.min(decisions, cells),
  }
}

/** Panel requested in a session whose table of decisions exists, and the tables that were made there. */
interface AskedPanel {
  readonly engine: Engine
  readonly spec: PanelSpec
  readonly table: string
  readonly made: string[]
}

/**
 * Makes the answer of a panel that is too large for the engine's memory block by block: some metrics at a time, and of
 * many decisions some. The columns of each block are in a table, in the order of the decisions, which the engine
 * spills; the tables are streamed side by side. Undefined if all can be made at once.
 */
export async function inBlocks(panel: AskedPanel, run: RunDeps): Promise<Ready | undefined> {
  const { engine, spec, table, made } = panel
  const deps = { ...run, generated: true }
  const [facts] = await engine.rows<{ rows: bigint; memory: string }>(
    `SELECT count(*) AS rows, current_setting('memory_limit') AS memory FROM ${quoteName(table)}`,
  )
  const rows = Number(facts?.rows)
  const memory = bytesOf(facts?.memory ?? '') ?? Infinity
  const blocks = blocksOf(rows, spec.metrics.length, memory)
  if (blocks === undefined) return undefined
  const columns = spec.metrics.length * (spec.fields?.length ?? 1)
  const subject = `a panel of ${rows} rows and ${columns} columns, ${optionAt(run.door ?? 'terminal', 'memory')}`
  requireMemory(memoryWith(memory, leastBytes + columns * columnBytes), keptMemory(), subject)
  const fill = async (into: string, sql: string): Promise<void> => {
    const { text } = await runScript(engine, `${into}\n${sql}`, deps)
    await runCancellable(engine, text, deps, async () => engine.run(text))
  }
  const parts: string[] = []
  const begin = (): string => {
    const name = `${table} ${parts.length}`
    parts.push(quoteName(name))
    made.push(name)
    return `TEMP TABLE ${quoteName(name)}`
  }
  await fill(`CREATE ${begin()} AS`, `SELECT * EXCLUDE (${key}) FROM ${quoteName(table)} ORDER BY ${key}`)
  for (let from = 0; from < spec.metrics.length; from += blocks.metrics) {
    const some = { ...spec, metrics: spec.metrics.slice(from, from + blocks.metrics) }
    const whole = begin()
    for (let first = 1; first <= rows; first += blocks.decisions) {
      const into = first === 1 ? `CREATE ${whole} AS` : `INSERT INTO ${parts.at(-1)}`
      await fill(into, partSql(some, table, first, first + blocks.decisions - 1))
    }
    const [held] = await engine.rows(`SELECT count(*) AS rows FROM ${parts.at(-1)}`)
    if (Number(held?.['rows']) !== rows) throw new RangeError(`a block of a panel has not ${rows} rows`)
  }
  return await runScript(engine, `SELECT *\nFROM ${parts.join(' POSITIONAL JOIN ')}`, deps)
}
