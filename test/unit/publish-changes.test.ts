import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Add, noTable } from '../../src/maintenance/publish/log.ts'
import { changeOf, type Target } from '../../src/maintenance/publish/changes.ts'
import { tagsOf } from '../../src/maintenance/publish/ranges.ts'
import { columnsFor, type Writing } from '../../src/maintenance/publish/write.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { temporaryFolder } from '../helpers/folders.ts'
import { partOf } from '../helpers/part-of.ts'

const mark = (version: number) => ({ version, at: version * 1000 })
const file = (path: string, n: number, bounds: object): Add => ({
  path,
  partitionValues: {},
  size: 1,
  modificationTime: 1,
  dataChange: true,
  stats: JSON.stringify({ numRecords: 1, ...bounds }),
  tags: tagsOf({ since: mark(n), until: mark(n + 1), group: null }),
})
const dates = (least: string, most: string) => ({ minValues: { day: least }, maxValues: { day: most } })
const files = [
  file('a', 0, dates('2026-01-01', '2026-01-03')),
  file('b', 1, dates('2026-01-04', '2026-01-06')),
  file('c', 2, {}),
]

/** The files that leave a table when rows of these values have changed. */
async function left(values: readonly string[], lost: readonly string[] = []): Promise<readonly string[]> {
  using homeFolder = temporaryFolder('changes')
  const home = homeFolder.path
  using engine = await Engine.open(':memory:', { threads: 1 })
  const rows = `SELECT '' AS day, make_timestamptz(0::BIGINT) AS "at" LIMIT 0`
  const stale = { by: 'day', values: async () => await Promise.resolve(values) }
  const growth = { at: 'at', open: false, groups: [], fresh: async () => await Promise.resolve(0), stale }
  const target: Target = {
    table: { name: 't', rows: () => rows, order: ['day'], growth },
    columns: await columnsFor(engine, rows),
    state: { ...noTable, version: 0, files: new Map(files.map((one) => [one.path, one])) },
    lost: new Set(lost),
  }
  const local = (name: string): string => join(home, name)
  const writing = partOf<Writing>({ engine, local, mark: 'm', now: () => 1, portions: { few: 1, large: 9 } })
  const change = await changeOf(writing, target, { last: mark(3), now: mark(4) })
  return (change?.leave ?? []).map(({ path }) => path)
}

test('a file is made again where it may hold a value that changed, its least and its largest included', async () => {
  expect(await left(['2026-01-03'])).toEqual(['a', 'c'])
  expect(await left(['2026-01-04', '2026-01-05'])).toEqual(['b', 'c'])
  expect(await left(['2026-01-01', '2026-01-06'])).toEqual(['a', 'b', 'c'])
})

test('a published file without bounds may have any value, and a lost one is always written again', async () => {
  expect(await left(['2026-01-07'])).toEqual(['c'])
  expect(await left([])).toEqual([])
  expect(await left([], ['b'])).toEqual(['b'])
})
