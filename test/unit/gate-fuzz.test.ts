import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import { LakeError } from '../../src/base/errors.ts'
import { openQuery } from '../../src/query/lake.ts'
import { runCancellable, runScript } from '../../src/query/run.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { openTestLake } from '../helpers/lakes/make-lake.ts'
import { type Prey, statementFrom } from '../helpers/sql-grammar.ts'
import { seeded } from '../helpers/random.ts'

const rounds = Number(process.env['GATE_FUZZ'] ?? 300)
const seed = Number(process.env['GATE_SEED'] ?? 20_261_122)
const token = 'this-must-not-be-read'

/** Every file below a folder with the digest of its bytes, but for what SQLite puts beside a database that is read. */
async function standing(home: string): Promise<string[]> {
  const all = await readdir(home, { recursive: true, withFileTypes: true })
  const found = all.filter(({ name }) => !/^ledger\.sqlite-(?:shm|wal)$/.test(name))
  const files = found.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
  const lines = files.map(
    async (file) =>
      `${file} ${createHash('sha256')
        .update(await readFile(file))
        .digest('hex')}`,
  )
  return [
    ...found.filter((one) => !one.isFile()).map((one) => join(one.parentPath, one.name)),
    ...(await Promise.all(lines)),
  ].toSorted()
}

/** What a statement gave, or the words that refused it. */
async function outcome(engine: Engine, folder: string, sql: string): Promise<{ rows: string } | { refused: string }> {
  const deps = { folder, sleep: setTimeout, signal: AbortSignal.timeout(20_000) }
  try {
    const { text } = await runScript(engine, sql, deps)
    const rows = await runCancellable(engine, text, deps, async () => {
      const columns: unknown[] = []
      for await (const chunk of (await engine.stream(text)).chunks) {
        columns.push(chunk.columns)
        // Joins of joins: what matters stands in the first rows.
        if (columns.length === 8) break
      }
      return columns
    })
    return { rows: JSON.stringify(rows, (_, held: unknown) => (typeof held === 'bigint' ? String(held) : held)) }
  } catch (error) {
    if (error instanceof LakeError) return { refused: error.message }
    throw new Error(`${JSON.stringify(sql)}: ${String(error)}`, { cause: error })
  }
}

test(`${rounds} statements of seed ${seed} read no file outside the lake and write none`, {
  timeout: 3_600_000,
}, async () => {
  const { root: folder, remove } = await openTestLake(hundredFetchedDays)
  const home = join(folder, '..')
  const prey: Prey = {
    secret: join(home, 'secret', 'secret.csv'),
    outside: join(home, 'secret', 'made'),
    inside: join(folder, 'points', 'made'),
  }
  await mkdir(join(home, 'secret'))
  await writeFile(prey.secret, `a\n${token}\n`)
  const before = await standing(home)
  const random = seeded(seed)
  const opened = async (): Promise<Engine> => {
    const session = await openQuery(folder)
    await session.run(`CREATE TEMP TABLE mine AS SELECT 1 AS a; CREATE TEMP VIEW seen AS FROM series;
      CREATE TEMP TABLE ask AS SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-02-01 00:00:00Z' AS ts; CREATE TEMP MACRO trap() AS TABLE FROM points`)
    return session
  }
  let engine = await opened()
  let passed = 0
  let gated = 0
  try {
    for (let n = 0; n < rounds; n++) {
      if (n % 500 === 499) {
        engine.close()
        engine = await opened()
      }
      const sql = statementFrom(random, prey)
      const told = await outcome(engine, folder, sql)
      await engine.run('ROLLBACK').catch(() => undefined)
      if ('rows' in told) passed++
      else if (/a query that only reads|SET VARIABLE only|files of the lake/.test(told.refused)) gated++
      expect(JSON.stringify(told), sql).not.toContain(token)
      if (n % 50 === 49) expect(await standing(home), sql).toEqual(before)
    }
    const [settings] = await engine.rows(
      `SELECT CAST(current_setting('enable_logging') AS INTEGER) AS log, current_setting('enable_external_access') AS access,
        current_setting('lock_configuration') AS locked, current_setting('TimeZone') AS zone`,
    )
    expect(settings).toEqual({ log: 0, access: false, locked: true, zone: 'UTC' })
    expect(await standing(home)).toEqual(before)
    // Both must come about, else nothing was tried.
    expect(passed).toBeGreaterThan(rounds / 40)
    expect(gated).toBeGreaterThan(rounds / 4)
    process.stdout.write(
      `gate: ${rounds} statements of seed ${seed}, ${passed} passed, ${gated} refused by the gate, ${rounds - passed - gated} no SQL\n`,
    )
  } finally {
    engine.close()
    remove()
  }
})
