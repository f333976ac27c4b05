import { expect, test } from 'vitest'
import { type KeptResult, pageOf } from '../bench/benchmarks-page.ts'

const result: KeptResult = {
  name: 'joins',
  seconds: 90,
  lines: ['strict ways differ: FAILED: no rows'],
  figures: [
    { name: 'a slow join', times: { pitlake: [3, 1, 2], DuckDB: [4, 4, 4], polars: [1, 1, 1] } },
    { name: 'a fast join', times: { pitlake: [1, 1, 1], DuckDB: [2, 3, 2.5] } },
  ],
  machine: '2 cores (any), 24 GB, Node 24.0.0, commit abcdef0',
  load: 2,
}

/** Returns the rows of the table below a heading. */
function rowsBelow(page: string, heading: string): string[] {
  const section = page.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return section.split('\n').filter((line) => /^\| (?!---|\s*\|)/.test(line))
}

test('the page compares the median of pitlake with that of the fastest peer', () => {
  const page = pageOf([result])
  expect(rowsBelow(page, 'Where a peer is faster')).toEqual([
    '| a slow join ([joins](#joins)) | 2.00 s | polars, 1.00 s | 2.00 |',
  ])
  expect(rowsBelow(page, 'Where pitlake is faster')).toEqual([
    '| a fast join ([joins](#joins)) | 1.00 s | DuckDB, 2.50 s | 0.40 |',
  ])
})

test('the page lists every program with its range, the machine, and what could not be measured', () => {
  const page = pageOf([result])
  expect(page).toContain('| a slow join | DuckDB | 4.00 s | 4.00 s to 4.00 s | 0.50 |')
  expect(page).toContain('measured everything in 2 minutes on 2 cores (any), 24 GB, Node 24.0.0, commit abcdef0')
  expect(page).toMatch(/could not be measured:\n\n- `joins`: strict ways differ/)
  expect(page).toMatch(/DuckDB 1\.5\.\d+ and 2\.0\.\d+, polars \d/)
})
