import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeLakes, named, placeOf } from '../helpers/damages.ts'
import { withRig } from '../helpers/fetching.ts'
test('x', async () => await withRig(Date.UTC(2024, 3, 20, 12) / 1000, async (rig) => {
  const home = mkdtempSync(join(tmpdir(), 'zz-'))
  const lakes = await makeLakes(rig, home)
  const run = placeOf(rig)
  const root = lakes.sound
  await run(root, 'views')
  writeFileSync(join(home, 's.sql'), 'SELECT * FROM points')
  await run(root, 'stamp', '../s.sql', '--out', '../s.parquet')
  for (const f of named(root, 'points/**/*.parquet')) rmSync(join(root, f))
  await run(root, 'doctor', '--repair', '--forget-lost')
  console.log('forgotten', await run(root, 'replay', '../s.parquet'))
  console.log('again', await run(root, 'stress', '../s.parquet', '--figure', 'SELECT count(*) FROM result'), await run(root, 'explain-change', '../s.parquet'))
  rmSync(home, { recursive: true })
  expect(1).toBe(1)
}))
