import { expect, test } from 'vitest'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { findOrphans } from '../../src/lake/ledger/spool-sweep.ts'
import { inFolder } from '../helpers/folders.ts'
import { answers } from '../helpers/points-at.ts'
import { metrics, rewriteDeps, topUps } from '../helpers/lakes/top-ups.ts'

/** Work while each file that a merge writes gets other rows than it should. */
async function withWrongFiles(wrong: (rows: string) => string, work: () => Promise<void>): Promise<void> {
  const { run } = Engine.prototype
  Engine.prototype.run = async function mistaken(sql, ...rest) {
    const harmed = sql.replace(
      /^COPY \((SELECT \* FROM [^]*)\) TO (?=')/m,
      (_, rows: string) => `COPY (${wrong(rows)}) TO `,
    )
    return await run.call(this, harmed, ...rest)
  }
  try {
    await work()
  } finally {
    Engine.prototype.run = run
  }
}

const instead = (what: string) => (rows: string) => `SELECT * REPLACE (${what}) FROM (${rows})`
const [one, other] = metrics
const everywhere: readonly (readonly [string, (rows: string) => string])[] = [
  ['a row too few', (rows) => `FROM (${rows}) OFFSET 1`],
  ['a row twice', (rows) => `FROM (${rows}) UNION ALL (FROM (${rows}) LIMIT 1)`],
  ['another value', instead('CASE WHEN v > 0.9 THEN v + 1e-9 ELSE v END AS v')],
  ['zeros that lost their sign', instead('v + 0.0 AS v')],
  ['no null any more', instead('coalesce(v, 0) AS v')],
  ['another instant', instead("available_at + INTERVAL '1 microsecond' AS available_at")],
]
/** All rows together are the same: only partition by partition they differ. */
const misplaced: typeof everywhere = [
  ['metrics exchanged', instead(`CASE metric WHEN '${one}' THEN '${other}' ELSE '${one}' END AS metric`)],
  ['another interval', instead(`CASE metric WHEN '${one}' THEN '1h' ELSE "interval" END AS "interval"`)],
]
const merge = async (
  root: string,
  deps: ReturnType<typeof rewriteDeps>,
): Promise<Awaited<ReturnType<typeof compact>>> => {
  using ledger = await Ledger.open(root)
  return await mergeSmallFiles(ledger, deps)
}
const cases = [
  ...everywhere.map(([name, wrong]) => ['own', name, wrong, [merge, compact]] as const),
  ...everywhere.map(([name, wrong]) => ['recent', name, wrong, [merge, compact]] as const),
  ...misplaced.map(([name, wrong]) => ['recent', name, wrong, [merge]] as const),
]

test.each(cases)('a merge (%s files) that wrote %s is abandoned, and nothing is lost', (level, _, wrong, merges) =>
  inFolder(async (root) => {
    const deps = rewriteDeps()
    using ledger = await Ledger.open(root)
    for (let n = 0; n < 2; n++) {
      const brought = metrics.map((metric) => ({ metric, since: n * 20, days: 20 }))
      await topUps(ledger, deps, brought, level)
    }
    const before = { files: liveFiles(ledger), said: await answers(ledger, null) }
    const left = level === 'own' ? metrics.length : 1
    await withWrongFiles(wrong, async () => {
      for (const work of merges) {
        const { abandoned, versions_made } = await work(root, deps)
        expect([abandoned.length, versions_made]).toEqual([left, 0])
        for (const { reason } of abandoned) expect(reason).toMatch(/^the (?:merged file|written files) /)
      }
    })
    await ledger.catchUp()
    expect(liveFiles(ledger)).toEqual(before.files)
    expect(await findOrphans(ledger)).toEqual([])
    expect(await answers(ledger, null)).toBe(before.said)
    expect((await mergeSmallFiles(ledger, deps)).files_removed).toBe(2 * left)
    expect(await answers(ledger, null)).toBe(before.said)
  }),
)
