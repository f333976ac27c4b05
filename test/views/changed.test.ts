import { appendFileSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openLake } from '../../src/index.ts'
import { pitlake } from '../helpers/command.ts'
import { makeLake, makeViews, type PointRow } from '../helpers/views.ts'

const supply = 'supply/current_pit'
const point = (metric: string, v: number): PointRow => ({
  metric,
  asset: 'BTC',
  interval: '24h',
  t: '2024-03-01',
  available_at: '2024-03-02T00:10:00Z',
  currency: metric === supply ? 'native' : null,
  v,
})

test('a file of another size than was committed is refused before anything is answered', async () => {
  const root = mkdtempSync(join(tmpdir(), 'pitlake-changed-'))
  const home = mkdtempSync(join(tmpdir(), 'pitlake-changed-out-'))
  try {
    const points = [point(supply, 1), point('indicators/sopr_adjusted_pit', 2)]
    await makeLake(root, [{ at: '2024-04-01T12:00:00Z', points }])
    await makeViews(root)
    const asked = [
      'sql',
      `SELECT v FROM points WHERE metric = '${supply}'`,
      '--data',
      root,
      '--out',
      join(home, 'v.csv'),
    ]
    expect(await pitlake(home, asked)).toMatchObject({ code: 0, message: '' })
    const [file = ''] = globSync('points/**/*.parquet', { cwd: root }).filter((path) => path.includes('sopr'))
    appendFileSync(join(root, file), '\n')
    const words = /sopr_adjusted.*expected the \d+ bytes that were committed, got \d+ bytes.*doctor/s
    expect(await pitlake(root, asked)).toMatchObject({ code: 4, message: expect.stringMatching(words) })
    await expect(openLake(root)).rejects.toThrow(words)
    // One that is missing is named by whoever reads it.
    rmSync(join(root, file))
    expect(await pitlake(home, asked)).toMatchObject({ code: 2, message: expect.stringContaining('sopr_adjusted') })
  } finally {
    rmSync(root, { recursive: true, force: true })
    rmSync(home, { recursive: true, force: true })
  }
})
