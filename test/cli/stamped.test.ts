import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { Engine, quote } from '../../src/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { fetchKey, withRig } from '../helpers/fetching.ts'
import { test } from '../helpers/lake-test.ts'
import { makeQueryLake } from '../helpers/query-lake.ts'
import { makeLake } from '../helpers/views.ts'

test('a Parquet file whose note is none is damaged, whatever stands there', async ({ root }) => {
  await makeLake(root, [{ at: '2024-01-01' }])
  const file = join(root, 'r.parquet')
  using engine = await Engine.open(':memory:')
  for (const note of ['null', '{', '[1]', '{"lake":"l","version":"1"}']) {
    const written = `(FORMAT parquet, KV_METADATA {pitlake_stamp: ${quote(note)}})`
    await engine.run(`COPY (SELECT 1 AS a) TO ${quote(file)} ${written}`)
    const { code, message } = await pitlake(root, ['replay', file, '--data', root])
    expect([note, code, message]).toEqual([note, 4, expect.stringContaining('got a damaged one')])
  }
})

test('a stamp carries every variable that was given, and its replay has them, too', async () => {
  const { folder, remove } = await makeQueryLake()
  const root = join(folder, '..')
  const run = async (...argv: readonly string[]) => await pitlake(root, [...argv, '--data', folder])
  try {
    writeFileSync(
      join(root, 'q.sql'),
      `SELECT getvariable('k')::VARCHAR AS k, getvariable('l')::VARCHAR AS l,
        epoch(getvariable('as_of')::TIMESTAMPTZ)::INT AS a, epoch(getvariable('observed_as_of')::TIMESTAMPTZ)::INT AS o`,
    )
    const instants = ['--as-of', '2024-01-02T00:00:00Z', '--observed-as-of', '2024-01-03T00:00:00Z']
    const done = await run('stamp', 'q.sql', '--out', 'r.parquet', ...instants, '--set', 'k=5', '--set', 'l=six')
    expect(done).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^1 rows of version \d+ stamped into r\.parquet/),
    })
    using engine = await Engine.open(':memory:', { threads: 1 })
    const at = (text: string): number => Date.parse(text) / 1000
    expect(await engine.rows(`FROM read_parquet(${quote(join(root, 'r.parquet'))})`)).toEqual([
      { k: '5', l: 'six', a: at('2024-01-02'), o: at('2024-01-03') },
    ])
    expect(await run('replay', 'r.parquet')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/the same bit for bit/),
    })
    expect((await run('stamp', 'none.sql', '--out', 's.parquet')).message).toMatch(/none\.sql/)
  } finally {
    await remove()
  }
})

test('doctor --provider lists what was told of each API below its name', async () =>
  withRig(Date.UTC(2026, 2, 4, 12) / 1000, async (rig) => {
    const env = { PITLAKE_METRICS_URL: rig.url, PITLAKE_METRICS_KEY: fetchKey }
    const { out } = await pitlake(rig.root, ['doctor', '--provider'], env, { now: () => rig.clock.now * 1000 })
    const [metrics = '', registry = ''] = out.split('registry API\n')
    expect(metrics).toMatch(/^metrics API\n(?: {2}(?:holds|CONTRADICTED|cannot be told) +[^\n]+\n){5,}$/)
    const rows = registry.split('\n').filter((line) => line.startsWith('  '))
    // Nobody is there to tell anything of the registry.
    expect(rows.length).toBeGreaterThan(3)
    expect(rows.filter((line) => !line.startsWith('  cannot be told'))).toEqual([])
    expect(registry).toMatch(/\n\d+ requests?: \d+ holds, \d+ contradicted, \d+ cannot be told\n/)
  }))
