import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Lake, openLake, rows } from '../../src/index.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'

/* A query cannot move a lake of TypeScript to a different state of knowledge, nor be answered from one. */

const { root: folder } = lakeOfFile(hundredFetchedDays)
const newest = 'SELECT CAST(max(t) AS VARCHAR) AS newest FROM points'
let lake: Lake
let known: unknown
beforeAll(async () => {
  const whole = await openLake(folder)
  const [row] = rows<{ middle: string }>(await whole.sql('SELECT CAST(median(t) AS VARCHAR) AS middle FROM points'))
  await whole.close()
  lake = await openLake(folder, { asOf: row?.middle ?? '' })
  known = rows(await lake.sql(newest))
})
afterAll(async () => await lake.close())

test.each([
  `SET VARIABLE as_of = NULL; ${newest}`,
  `SET VARIABLE "as_of" = '2300-01-01'`,
  `set variable AS_OF = NULL; CREATE TEMP TABLE later AS ${newest}; SET VARIABLE as_of = '2024-01-01'; FROM later`,
  `RESET VARIABLE as_of; ${newest}`,
  `SET VARIABLE observed_as_of = '2024-01-01'; ${newest}`,
  `SET VARIABLE backfill = 'rule'; ${newest}`,
  `SET VARIABLE registry_backfill = true; ${newest}`,
  `CREATE TEMP MACRO getvariable(name) AS NULL; ${newest}`,
  `CREATE TEMP MACRO getvariable(name) AS NULL; SELECT no_such_column`,
])('%s', async (sql) => {
  await expect(lake.sql(sql)).rejects.toThrow(/expected a query that leaves \w+ alone|no_such_column/)
  expect(rows(await lake.sql(newest))).toEqual(known)
})

test('a variable of the caller is set, and a query that fails leaves the state', async () => {
  expect(rows(await lake.sql("SET VARIABLE days = 5; SELECT getvariable('days') AS days"))).toEqual([{ days: 5 }])
  await expect(lake.sql('SET VARIABLE as_of = NULL; SELECT no_such_column')).rejects.toThrow('alone')
  expect(rows(await lake.sql(newest))).toEqual(known)
})
