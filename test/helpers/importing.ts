import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { type Ended, pitlake } from './command.ts'
import { makeFolder } from './folders.ts'

/** A folder with files of somebody's own, and the lake that takes them. */
export interface Desk {
  readonly folder: string
  /** Writes a file. */
  put(name: string, text: string | Buffer): string
  /** Runs `pitlake import` at an instant, with `--json`. */
  take(argv: readonly string[], at?: string): Promise<Ended & { readonly told: Readonly<Record<string, unknown>> }>
  /** Any other command line. */
  run(argv: readonly string[], at?: string): Promise<Ended>
  /** Rows of a statement on the lake as anybody opens it. */
  rows(sql: string, variables?: string): Promise<Row[]>
  /** The same, once for many. */
  open(): Promise<Engine>
}

const noon = '2026-06-01T12:00:00Z'

/** Runs the work with an empty lake. */
export async function withDesk(work: (desk: Desk) => Promise<void>): Promise<void> {
  const folder = makeFolder('own')
  const run: Desk['run'] = async (argv, at = noon) =>
    await pitlake(folder, [...argv, '--data', join(folder, 'lake')], {}, { now: () => Date.parse(at) })
  const open: Desk['open'] = async () =>
    await Engine.open(join(folder, 'lake', 'lake.duckdb'), { readOnly: true, threads: 1 })
  try {
    await work({
      folder,
      run,
      put: (name, text) => {
        writeFileSync(join(folder, name), text)
        return join(folder, name)
      },
      take: async (argv, at) => {
        const ended = await run(['import', ...argv, '--json'], at)
        return { ...ended, told: ended.out === '' ? {} : (JSON.parse(ended.out) as Record<string, unknown>) }
      },
      open,
      rows: async (sql, variables = '') => {
        using engine = await open()
        if (variables !== '') await engine.run(variables)
        return await engine.rows(sql)
      },
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
