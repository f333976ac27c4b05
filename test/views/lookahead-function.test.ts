// @module-tag full
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Lake, lookahead, type Rows } from '../../src/index.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

const lake = lakeOfFile(lateDaysAndProducts)

type Row = { readonly ts: Date; readonly v: number | null }

/** The last value known each day, as rows; the metric is named, so that its arrivals are known. */
async function known(own: Lake): Promise<Row[]> {
  const sql = `SELECT d.ts, p.v FROM calendar('2024-03-01', '2024-03-20', '1 day') d ASOF LEFT JOIN
    (FROM points WHERE metric = '${lateMetric}' AND asset = 'BTC') p ON p.available_at <= d.ts ORDER BY d.ts`
  const table = await own.sql(sql)
  return [...table].map((row) => ({ ts: new Date(row['ts'] as number), v: row['v'] as number }))
}

const tried = async (work: (own: Lake) => Promise<Rows>, cutoffs = 5) => lookahead(work, lake.root, { cutoffs })

describe('a function', () => {
  test('that reads only known data is clean and not proved', async () => {
    const proof = await tried(known, 8)
    expect(proof).toMatchObject({ verdict: 'clean', rows: 19, proved: false, unproved: { what: 'the function' } })
    expect(proof.changed).toBeGreaterThan(5)
  })

  test('is cut at each state of knowledge that its note counts', async () => {
    const cuts = new Set<string>()
    const proof = await tried(async (own) => {
      const [row] = await own.sql(
        `SELECT CAST(getvariable('as_of') AS VARCHAR) AS at WHERE getvariable('proof_calendar') IS NULL`,
      )
      if (typeof row?.['at'] === 'string') cuts.add(row['at'])
      return known(own)
    }, 50)
    const [, counted] = /^(\d+) of \d+ states/m.exec(proof.notes.join('\n')) ?? []
    expect(Number(counted)).toBeGreaterThan(15)
    expect(cuts.size).toBeGreaterThanOrEqual(Number(counted))
  })

  test('whose rows are an Arrow table keeps instants and bits', async () => {
    const proof = await tried(async (own) =>
      own
        .sql(`SELECT ts, v FROM pit_join((SELECT ts, 'BTC' AS asset
      FROM calendar('2024-03-01', '2024-03-09', '1 day')), '${lateMetric}', '24h')`)
        .catch(async () =>
          own.sql(
            `SELECT t AS ts, v, available_at FROM points WHERE asset = 'BTC' AND t BETWEEN '2024-03-01' AND '2024-03-09'`,
          ),
        ),
    )
    expect(proof).toMatchObject({ verdict: 'leak', depends_on: expect.arrayContaining(['existence']) })
    expect(proof.differences[0]?.row['available_at']).toMatch(/^2024-03-\d\dT00:10:00\.000000Z$/)
  })

  test.for<[string, (rows: Row[]) => readonly Row[]]>([
    ['a mean of everything', (rows) => rows.map((row) => ({ ...row, v: (row.v ?? 0) - mean(rows) }))],
    ['the next row', (rows) => rows.map((row, n) => ({ ...row, v: rows[n + 1]?.v ?? null }))],
  ])('that uses %s leaks values', async ([, change]) => {
    const proof = await tried(async (own) => change(await known(own)))
    expect(proof.verdict).toBe('leak')
    expect(proof.depends_on).toContain('values')
  })

  test('that requests a later universe sees nothing after its world, and one that sets as_of is refused', async () => {
    const asked = await tried(async (own) => {
      const rows = await known(own)
      const ids = [...((await own.universe('2024-11-01')).getChild('product_id') ?? [])].join(' ')
      return rows.map((row) => ({ ...row, ids }))
    })
    expect(asked).toMatchObject({ verdict: 'leak', depends_on: ['registry'] })
    const set = await tried(async (own) => {
      await own.sql('SET VARIABLE as_of = NULL; SELECT 1')
      return known(own)
    })
    expect(set).toMatchObject({ verdict: 'undecided', reason: expect.stringContaining('leaves as_of alone') })
  })

  test('that reads no registry never depends on it, whatever words its text has: the cause is not found', async () => {
    const assets = ['BTC']
    const products = async (own: Lake): Promise<string> => {
      const table = await own.sql(`SELECT CAST(getvariable('as_of') AS VARCHAR) AS at`)
      return String([...table][0]?.['at'])
    }
    const turned = await tried(async (own) => {
      const at = await products(own)
      return (await known(own)).map((row) => ({ ...row, v: `${assets.join()} ${at}` }))
    })
    expect(turned).toMatchObject({
      verdict: 'leak',
      depends_on: [],
      reason: expect.stringMatching(/cause not found$/),
    })
  })

  test('that reads the registry through a query of another name depends on it', async () => {
    const last = async (own: Lake): Promise<Row[]> => {
      const table = await own.sql(`SELECT count(*) AS n FROM history.products`)
      return (await known(own)).map((row) => ({ ...row, v: Number([...table][0]?.['n']) }))
    }
    expect(await tried(async (own) => await last(own))).toMatchObject({ verdict: 'leak', depends_on: ['registry'] })
  })

  test('a function that reads user rows and a user file sees what was known by then', async () => {
    const days = Array.from({ length: 20 }, (_, n) => new Date(Date.UTC(2024, 2, 1 + n)))
    const decided = join(dirname(lake.root), 'decided.csv')
    writeFileSync(decided, `ts\n${days.map((at) => `${at.toISOString().slice(0, 10)}T07:00:00Z`).join('\n')}\n`)
    const scores = days.map((at, n) => ({ available_at: new Date(at.getTime() + 9 * 3_600_000), score: n }))
    const asked = async (on: string) =>
      lookahead(
        async (own) => own.sql(`SELECT d.ts, s.score FROM decided AS d ASOF LEFT JOIN scores AS s ON ${on}`),
        lake.root,
        {
          cutoffs: 5,
          own: { decided, scores },
        },
      )
    expect((await asked('s.available_at <= d.ts')).verdict).toBe('clean')
    expect((await asked(`s.available_at <= CAST(d.ts AS TIMESTAMPTZ) + INTERVAL 3 HOURS`)).verdict).toBe('leak')
  })

  test('that raises, or is not deterministic, or gives no instants, is undecided with the reason', async () => {
    const raising = await tried(async (own) => {
      const rows = await known(own)
      if (rows.at(-1)?.v !== rows.at(-2)?.v) return rows
      throw new Error('no news today')
    })
    expect(raising).toMatchObject({
      verdict: 'undecided',
      reason: expect.stringMatching(/raises as of 2024-.*no news today/),
    })
    const whole = await tried(async () => {
      throw new Error('nothing works')
    })
    expect(whole.reason).toBe('the function raises on the whole lake: nothing works')
    let n = 0
    const drawn = await tried(async (own) => (await known(own)).map((row) => ({ ...row, v: n++ })))
    expect(drawn).toMatchObject({ verdict: 'undecided', reason: expect.stringContaining('not deterministic') })
    expect(await tried(async () => [{ a: 1 }])).toMatchObject({
      verdict: 'undecided',
      reason: expect.stringContaining('no column ts'),
    })
    expect(await tried(async () => [])).toMatchObject({ verdict: 'undecided' })
  })

  test('that is cancelled ends with the error stopped', async () => {
    const stop = new AbortController()
    const going = lookahead(
      async (own) => {
        stop.abort()
        return known(own)
      },
      lake.root,
      { signal: stop.signal },
    )
    await expect(going).rejects.toMatchObject({ kind: 'stopped' })
  })
})

const mean = (rows: readonly Row[]): number => rows.reduce((sum, { v }) => sum + (v ?? 0), 0) / rows.length

test('a function whose rows count the notes of its lake is clean: notes are for people, and stand in the verdict', async () => {
  const decisions = Array.from({ length: 6 }, (_, n) => ({ asset: 'BTX', ts: new Date(Date.UTC(2024, 2, 2 + n)) }))
  const proof = await lookahead(
    async (own) => {
      await own.panel({ metrics: [lateMetric], decisions })
      return decisions.map(({ ts }) => ({ ts, v: own.notes.length }))
    },
    lake.root,
    { cutoffs: 2 },
  )
  expect(proof.verdict).toBe('clean')
  expect(proof.notes).toContainEqual(expect.stringContaining("'BTX'"))
})
