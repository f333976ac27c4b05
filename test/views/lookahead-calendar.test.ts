// @module-tag slow
import { expect, test } from 'vitest'
import { type Lake, lookahead, type Rows } from '../../src/index.ts'
import { chooseEnds } from '../../src/trust/lookahead/calendar.ts'
import { sample } from '../helpers/tiers.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

/*
 * Functions whose rows stand on a calendar, on decisions of their own, or on rows that they were given: what counts or
 * reaches into later ones is a leak by its calendar, its twin that counts those so far is not.
 */

const lake = lakeOfFile(lateDaysAndProducts)

interface Row {
  readonly ts: Date
  readonly v: number
}

const grid = { since: '2024-03-02', until: '2024-03-05', step: '4h' }
const dayOf = ({ ts }: Row): number => Math.floor(ts.getTime() / 86_400_000)
const rowsOf = (table: Iterable<{ toJSON(): unknown }>): Row[] =>
  [...table].map((row) => {
    const { ts } = row.toJSON() as { readonly ts: number }
    return { ts: new Date(ts), v: 0 }
  })

/** The ways in which a function comes to its rows; each names the metric, whose arrivals count. */
const sources: Readonly<Record<string, (own: Lake) => Promise<Row[]>>> = {
  'lake.calendar': async (own) => rowsOf(await own.calendar({ ...grid, assets: ['BTC'] })),
  'calendar in SQL': async (own) => rowsOf(await own.sql(`FROM calendar('2024-03-02', '2024-03-05', '4 hours')`)),
  'the calendar of a panel': async (own) =>
    rowsOf(await own.panel({ metrics: [lateMetric], calendar: grid, assets: ['BTC'] })),
  'decisions of a panel': async (own) => rowsOf(await own.panel({ metrics: [lateMetric], decisions })),
  'decisions of a join': async (own) => rowsOf(await own.pitJoin({ metric: lateMetric, decisions })),
  'decisions of a window': async (own) => rowsOf(await own.window({ metric: lateMetric, decisions, n: 1 })),
  'rows that were given': async (own) =>
    rowsOf(await own.sql('SELECT CAST(TS AS TIMESTAMPTZ) AS ts FROM given ORDER BY 1')),
}

const decisions = Array.from({ length: 18 }, (_, n) => ({
  asset: 'BTC',
  ts: new Date(Date.UTC(2024, 2, 2, 4 * n)).toISOString(),
}))

type Change = (rows: readonly Row[]) => (row: Row, place: number) => number

/** What is planted, and its twin that looks back alone. */
const changes: readonly (readonly [what: string, leak: Change, honest: Change])[] = [
  ['its share of all rows', (rows) => (_, n) => (n + 1) / rows.length, () => (_, n) => n + 1],
  [
    'the rows of its day',
    (rows) => (row) => rows.filter((other) => dayOf(other) === dayOf(row)).length,
    (rows) => (row, n) => rows.slice(0, n + 1).filter((other) => dayOf(other) === dayOf(row)).length,
  ],
  ['how many rows come later', (rows) => (_, n) => rows.length - n, (rows) => (_, n) => rows.slice(0, n).length],
  ['whether it is the last', (rows) => (_, n) => Number(n === rows.length - 1), () => (_, n) => Number(n === 0)],
  [
    'hours until the next row',
    (rows) => (row, n) => (rows[n + 1] ?? row).ts.getTime() - row.ts.getTime(),
    (rows) => (row, n) => row.ts.getTime() - (rows[n - 1] ?? row).ts.getTime(),
  ],
]

// Cast: a function of a user may return plain rows, as JavaScript without types does.
const tried = async (rows: (own: Lake) => Promise<readonly Row[]>) =>
  await lookahead(async (own) => (await rows(own)) as unknown as Rows, lake.root, {
    cutoffs: 1,
    own: { given: decisions },
  })

const pairs = Object.keys(sources).flatMap((source, n) =>
  // Each change on the calendar, every other source with two of them.
  changes
    .filter((_, place) => n === 0 || place === n % 5 || place === (n + 2) % 5)
    .map((change) => [source, ...change] as const),
)

test.for(sample(pairs, 6, 11))(
  'from %s, %s is a leak by its calendar, what came so far is clean',
  async ([source, , leak, honest]) => {
    const from = sources[source] ?? (async () => [])
    const changed = (change: Change) => async (own: Lake) => {
      const rows = await from(own)
      const valueAt = change(rows)
      return rows.map((row, place) => ({ ...row, v: valueAt(row, place) }))
    }
    const found = await tried(changed(leak))
    expect(found).toMatchObject({
      verdict: 'leak',
      depends_on: ['calendar'],
      reason: expect.stringMatching(/calendar/),
    })
    expect(found.differences[0]?.future).toBe('calendar')
    const clean = await tried(changed(honest))
    expect(clean).toMatchObject({ verdict: 'clean', proved: false, depends_on: [] })
    expect(clean.notes.join()).not.toMatch(/instants of its own/)
  },
)

test('instants that a function makes itself are clean with a note; one that raises on a shorter calendar stays clean', async () => {
  const made = await tried(async () => decisions.map(({ ts }) => ({ ts: new Date(ts), v: 1 })))
  expect(made.verdict).toBe('clean')
  expect(made.notes.join()).toMatch(/it makes instants of its own/)
  const raising = await tried(async (own) => {
    const rows = (await sources['lake.calendar']?.(own)) ?? []
    if (rows.length < 18) throw new Error('too few')
    return rows
  })
  expect(raising.verdict).toBe('clean')
  expect(raising.notes.join()).toMatch(/ended in an error and therefore show nothing: too few/)
})

test('ends of the calendar never all stand at the same place of an hour or a week', () => {
  for (const length of [4, 5, 6, 7, 12, 24])
    for (const count of [18, 60, 144, 145, 1000]) {
      const ends = chooseEnds(count, 4)
      expect(new Set(ends.map((end) => end % length)).size, `${count} by ${length}`).toBeGreaterThan(1)
      expect([Math.min(...ends) >= 0, Math.max(...ends) < count - 1]).toEqual([true, true])
    }
})
