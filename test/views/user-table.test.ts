import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { DateDay, Table, vectorFromArray } from 'apache-arrow'
import { expect, test } from 'vitest'
import { type Lake, lookahead, type Rows } from '../../src/index.ts'
import { proveQuery } from '../../src/interfaces/commands/lookahead.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { panelSpec, panelSql, readDecisionTypes } from '../../src/query/panel.ts'
import { bringUserFiles } from '../../src/trust/lookahead/own-files.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

/*
 * Times in user files that a query names are read as an import reads them: a date in available_at counts from the end
 * of its day, and texts of no known spelling are refused with their row.
 */

const lake = lakeOfFile(lateDaysAndProducts)
const folder = mkdtempSync(join(tmpdir(), 'user-table-'))

function put(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

async function putParquet(name: string, select: string): Promise<string> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run(`COPY (${select}) TO ${quote(join(folder, name))} (FORMAT parquet)`)
  return join(folder, name)
}

/** Reads a file as a query of a proof sees it. */
async function rowsOf(file: string) {
  using session = await Engine.open(':memory:', { threads: 1 })
  await session.run(`SET TimeZone = 'UTC'`)
  const notes = await bringUserFiles(session, [['s', file]])
  const rows = await session.rows<Record<string, string | null>>('SELECT COLUMNS(*)::VARCHAR FROM s')
  const types = await session.rows<{ column_name: string; column_type: string }>('DESCRIBE FROM s')
  return {
    notes,
    rows: rows.map((row) => Object.values(row).join(' | ')),
    types: Object.fromEntries(types.map((column) => [column.column_name, column.column_type])),
  }
}

test('a date in available_at counts from the end of its day in every format', async () => {
  const files = [
    put('d.csv', 'available_at,score\n2024-03-02,1\n2024-3-3,2\n'),
    put('d.json', '{"available_at":"2024-03-02","score":1}\n{"available_at":"2024-03-03","score":2}\n'),
    await putParquet(
      'd.parquet',
      `SELECT unnest([DATE '2024-03-02', DATE '2024-03-03']) AS available_at, unnest([1, 2]) AS score`,
    ),
    await putParquet(
      't.parquet',
      `SELECT unnest(['2024-03-02', '2024-03-03']) AS available_at, unnest([1, 2]) AS score`,
    ),
  ]
  for (const file of files) {
    const { rows, notes } = await rowsOf(file)
    expect(rows, file).toEqual(['2024-03-03 00:00:00+00 | 1', '2024-03-04 00:00:00+00 | 2'])
    expect(notes, file).toEqual(['s: a date in available_at counts from the end of its day, UTC'])
  }
})

test('a date in ts is a decision at the beginning of its day, and a decision without a time stays', async () => {
  const { rows } = await rowsOf(put('ts.csv', 'asset,ts\nBTC,2024-03-02\nBTC,\nBTC,2024-03-02T12:00:00+02:00\n'))
  expect(rows).toEqual(['BTC | 2024-03-02 00:00:00+00', 'BTC | ', 'BTC | 2024-03-02 10:00:00+00'])
})

test.for(['03/04/2024', '2024-03-01 10:00 PST', '2024-03-01T10+02', '20240301', 'infinity', ''])(
  'the time "%s" is refused with its row in available_at',
  async (text) => {
    const got = text === '' ? 'nothing' : JSON.stringify(text)
    await expect(rowsOf(put('bad.csv', `score,available_at\n1,2024-03-01\n2,${text}\n`))).rejects.toThrow(
      `bad.csv: row 2: available_at: expected a date such as 2024-03-01 or an instant, of the years 1700 to 2199, got ${got}`,
    )
  },
)

test('a clock that the first thousand objects of a JSON file lack is found, and its missing times are refused', async () => {
  const file = put('late.jsonl', `${'{"score":1}\n'.repeat(1500)}{"score":2,"available_at":"2024-03-02"}\n`)
  await expect(rowsOf(file)).rejects.toThrow(/late\.jsonl: row 1: available_at: expected a date.*got nothing/)
})

test('times that are all midnights are noted, because they may mean whole days', async () => {
  const { rows, notes } = await rowsOf(put('midnights.csv', 'available_at\n2024-03-02T00:00:00Z\n'))
  expect(rows).toEqual(['2024-03-02 00:00:00+00'])
  expect(notes).toEqual([
    's: each time in available_at is the beginning of a day; if it means the whole day, write a date',
  ])
})

test('numbers as times are refused without a remark about a flag that lookahead lacks', async () => {
  const file = await putParquet('n.parquet', 'SELECT 1709251200 AS available_at')
  await expect(rowsOf(file)).rejects.toThrow(/row 1: available_at: expected a date such as 2024-03-01 or an instant/)
})

test('columns without a clock get the type that all of their texts show, and no date is guessed', async () => {
  const { types } = await rowsOf(
    put(
      'types.csv',
      'day,at,zoned,n,x,code,flag,guess,big\n' +
        '2024-03-01,2024-03-01 10:00,2024-03-01T10:00:00Z,1,1.5,007,true,03/04/2024,123456789012345678901\n' +
        '2024-03-02,2024-03-02 10:00,2024-03-02T10:00:00Z,,-2e3,008,false,04/04/2024,1\n',
    ),
  )
  expect(types).toEqual({
    day: 'DATE',
    at: 'TIMESTAMP',
    zoned: 'TIMESTAMP WITH TIME ZONE',
    n: 'BIGINT',
    x: 'DOUBLE',
    code: 'VARCHAR',
    flag: 'BOOLEAN',
    guess: 'VARCHAR',
    big: 'HUGEINT',
  })
})

const days = Array.from({ length: 30 }, (_, n) => new Date(Date.UTC(2024, 2, 1 + n)).toISOString().slice(0, 10))
const decided = () => put('decided.csv', `ts\n${days.map((day) => `${day}T12:00:00Z`).join('\n')}\n`)
const scored = () =>
  put('scores.csv', `available_at,day,score\n${days.map((d, n) => `${d},${d},${(n * 37) % 11}`).join('\n')}\n`)

test('a query that uses a value at noon of the date on which it became known is a leak', async () => {
  const trial = { ts: 'ts', labels: [], cutoffs: 8, control: 3, tolerance: 0 }
  const prove = async (on: string) =>
    await proveQuery(
      { text: `SELECT d.ts, s.score FROM decided AS d ASOF LEFT JOIN scores AS s ON ${on}`, set: {} },
      trial,
      { folder: lake.root, sleep: setTimeout },
      [
        ['decided', decided()],
        ['scores', scored()],
      ],
    )
  expect(await prove('s.day <= CAST(d.ts AS DATE)')).toMatchObject({ verdict: 'leak', depends_on: ['own scores'] })
  expect(await prove('s.available_at <= d.ts')).toMatchObject({
    verdict: 'clean',
    proved: true,
    notes: ['scores: a date in available_at counts from the end of its day, UTC'],
  })
})

test('rows and Arrow tables given to a function are read like files', async () => {
  const given: Readonly<Record<string, Rows>> = {
    rows: days.map((day, n) => ({ available_at: day, score: n })),
    table: new Table({
      available_at: vectorFromArray(
        days.map((day) => new Date(day)),
        new DateDay(),
      ),
      score: vectorFromArray(days.map((_, n) => n)),
    }),
  }
  for (const scores of Object.values(given)) {
    const seen: string[] = []
    const work = async (own: Lake): Promise<Rows> => {
      const [first] = await own.sql('SELECT CAST(min(available_at) AS VARCHAR) AS at FROM scores')
      seen.push(String(first?.['at']))
      return await own.sql(
        'SELECT d.ts, s.score FROM decided AS d ASOF LEFT JOIN scores AS s ON s.available_at <= d.ts',
      )
    }
    const { verdict, notes } = await lookahead(work, lake.root, { cutoffs: 4, own: { decided: decided(), scores } })
    expect([verdict, seen[0]]).toEqual(['clean', '2024-03-02 00:00:00+00'])
    expect(notes).toContain('scores: a date in available_at counts from the end of its day, UTC')
  }
  const bad = lookahead(() => [], lake.root, { own: { scores: [{ available_at: '03/04/2024' }] } })
  await expect(bad).rejects.toThrow('scores: row 1: available_at: expected a date such as 2024-03-01')
})

test('a function is tested with the session variables of the option set', async () => {
  const seen = new Set<string>()
  const work = async (own: Lake): Promise<Rows> => {
    const [row] = await own.sql(
      `SELECT CAST(getvariable('window') AS VARCHAR) AS n, typeof(getvariable('window')) AS type`,
    )
    seen.add(`${row?.['n']} ${row?.['type']}`)
    return await own.sql('SELECT ts, 1 AS v FROM decided')
  }
  const options = { cutoffs: 3, own: { decided: decided() }, set: { window: 5 } }
  expect((await lookahead(work, lake.root, options)).verdict).toBe('clean')
  expect([...seen]).toEqual(['5 INTEGER'])
  await expect(lookahead(work, lake.root, { ...options, set: { backfil: 'rule' } })).rejects.toThrow(
    /did you mean backfill/,
  )
})

/** Reads a file of decisions as a panel does. */
async function decisionsOf(file: string) {
  const spec = panelSpec({ metrics: 'supply/current_pit' }, 'terminal', { kind: 'file', path: file })
  using engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run(`SET TimeZone = 'UTC'; ${panelSql(await readDecisionTypes(spec)).decisions}`)
  const rows = await engine.rows<Record<string, string | null>>(
    'SELECT COLUMNS(* EXCLUDE _pit_decision)::VARCHAR FROM decisions',
  )
  const types = await engine.rows('DESCRIBE decisions')
  return { rows: rows.map((row) => Object.values(row).join(' | ')), types: types.map((row) => row['column_type']) }
}

test('a file of decisions is read like other user files: no date is guessed, and a strange ts is refused', async () => {
  const lines = [
    'asset,ts,day,guess,weight',
    '7,2024-03-02,2024-03-01,03/04/2024,1.5',
    '7,2024-03-02T12:00:00+02:00,,,2',
  ]
  const { rows, types } = await decisionsOf(put('decisions.csv', `${lines.join('\n')}\n`))
  expect(rows).toEqual([
    '7 | 2024-03-02 00:00:00+00 | 2024-03-01 | 03/04/2024 | 1.5',
    '7 | 2024-03-02 10:00:00+00 |  |  | 2.0',
  ])
  expect(types).toEqual(['BIGINT', 'VARCHAR', 'TIMESTAMP WITH TIME ZONE', 'DATE', 'VARCHAR', 'DOUBLE'])
  await expect(decisionsOf(put('bad.csv', 'asset,ts\nBTC,2024-03-02\nBTC,03/04/2024\n'))).rejects.toThrow(
    'bad.csv: row 2: ts: expected a date such as 2024-03-01 or an instant, of the years 1700 to 2199, got "03/04/2024"',
  )
})
