import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { verdict } from '../../src/sources/metrics/run-summary.ts'
import { exitOf } from '../helpers/looking.ts'
import { type OwnProvider, withProvider } from '../helpers/provider.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { heldDays, inWindow } from '../helpers/days.ts'

const day = 86_400
const at = (text: string): number => Date.parse(`2024-${text}Z`) / 1000
const metric = 'indicators/sopr_adjusted_pit'
const first = at('03-01')
const selection = { assets: ['BTC'], paths: [metric], intervals: ['24h'] as const, since: first }
const two = [
  { t: first, v: 100 },
  { t: first + day, v: 200 },
]

type Point = Readonly<{ t: number; v: number }>

/** Answers every window with what of these points lies in it; `raw` answers whatever was asked. */
function shows(own: OwnProvider, points: readonly Point[]): void {
  own.answer((path, query) => {
    if (path === 'assets') return { status: 404 }
    return inWindow(query, points)
  })
}
const raw = (own: OwnProvider, answer: unknown): void =>
  own.answer((path) => (path === 'assets' ? { status: 404 } : answer))

/** Day and value of every point that the views show. */
async function stored(own: OwnProvider, set = ''): Promise<unknown[]> {
  await makeViews(own.root)
  return await withViews(own.root, async (engine) => {
    if (set !== '') await engine.run(set)
    const rows = await engine.rows(`SELECT strftime(t AT TIME ZONE 'UTC', '%m-%d') AS d, v FROM points ORDER BY t`)
    return rows.map((row) => [row['d'], row['v']])
  })
}

const windows = async (own: OwnProvider): Promise<string[]> => await heldDays(own.root, first)

const exit = (summary: Parameters<typeof verdict>[0]): number => exitOf(verdict(summary))

test('TIME 14: a value that the provider rewrites is reported with both values and never applied', async () =>
  withProvider(at('03-04'), async (own) => {
    shows(own, two)
    expect(exit(await own.fetch(selection))).toBe(0)
    own.clock.now = at('03-10')
    shows(own, [{ t: first, v: 101 }, ...two.slice(1)])
    expect(exit(await own.fetch(selection))).toBe(4)
    expect((await stored(own))[0]).toEqual(['03-01', 100])
    const violations = async (set: string): Promise<unknown[]> =>
      await withViews(own.root, async (engine) => {
        await engine.run(set)
        const rows = await engine.rows(
          'SELECT kind, stored::DOUBLE AS stored, offered::DOUBLE AS offered FROM violations',
        )
        return rows.map((row) => Object.values(row))
      })
    expect(await violations('SELECT 1')).toEqual([['changed', 100, 101]])
    expect(await violations(`SET VARIABLE observed_as_of = '2024-03-05'`)).toEqual([])
  }))

test('TIME 15: an identical duplicate in one body is one point', async () =>
  withProvider(at('03-03 00:30'), async (own) => {
    raw(own, [two[0], two[0], two[1]])
    expect(await own.fetch(selection)).toMatchObject({ points_added: 2, violations: 0 })
  }))

test('TIME 16: a conflicting duplicate in one body puts it aside, nothing is stored', async () =>
  withProvider(at('03-03 00:30'), async (own) => {
    raw(own, [two[0], { t: first, v: 7 }, two[1]])
    expect(await own.fetch(selection)).toMatchObject({ points_added: 0, windows: { failed: 1 } })
    expect(readdirSync(join(own.root, 'quarantine')).length).toBeGreaterThan(0)
    expect(await stored(own)).toEqual([])
  }))

test('TIME 17: windows that overlap add neither points nor files', async () =>
  withProvider(at('03-04'), async (own) => {
    shows(own, two)
    const before = await own.fetch({ ...selection, until: first + 2 * day })
    const again = await own.fetch(selection)
    expect(again).toMatchObject({ points_added: 0, files_added: 0, violations: 0 })
    expect(before.points_added).toBe(2)
    expect(await stored(own)).toEqual([
      ['03-01', 100],
      ['03-02', 200],
    ])
  }))

test('TIME 33: an interval that has not ended is not stored, its final value once', async () =>
  withProvider(at('03-02 18:00'), async (own) => {
    raw(own, [two[0], { t: first + day, v: 199 }])
    await own.fetch(selection)
    expect(await stored(own)).toEqual([['03-01', 100]])
    own.clock.now = at('03-03 12:00')
    shows(own, two)
    expect(await own.fetch(selection)).toMatchObject({ points_added: 1, violations: 0 })
    expect(await stored(own)).toEqual([
      ['03-01', 100],
      ['03-02', 200],
    ])
  }))

test('TIME 34: nothing at all with HTTP 200 is a failure, never an empty window', async () =>
  withProvider(at('03-04'), async (own) => {
    raw(own, { status: 200, text: '' })
    expect(await own.fetch(selection)).toMatchObject({ windows: { failed: 1, empty: 0 } })
    expect(await windows(own)).toEqual(['0..2 body: an empty body'])
  }))

test.each([
  ['[]', []],
  ['204', { status: 204 }],
])('TIME 35: %s is an empty window with the time of its request; points that come later are late', async (_, answer) =>
  withProvider(at('03-03 00:30'), async (own) => {
    raw(own, answer)
    const until = first + 2 * day
    expect(await own.fetch({ ...selection, until })).toMatchObject({ windows: { empty: 1, failed: 0 } })
    expect(existsSync(join(own.root, 'quarantine')) ? readdirSync(join(own.root, 'quarantine')) : []).toEqual([])
    own.clock.now = at('03-03 09:00')
    shows(own, two)
    expect(await own.fetch({ ...selection, until })).toMatchObject({ points_added: 2, violations: 0 })
    await makeViews(own.root)
    await withViews(own.root, async (engine) => {
      // The second day was not due yet when the first answer came.
      const rows = await engine.rows('SELECT basis, available_at = observed_at AS seen FROM points ORDER BY t')
      expect(rows).toEqual([
        { basis: 'observed', seen: true },
        { basis: 'assumed', seen: false },
      ])
    })
  }),
)

test('TIME 36: starts in milliseconds, with fractions or off the grid are put aside, not rounded', async () =>
  withProvider(at('03-04'), async (own) => {
    for (const t of [1709251200000, 1709251200.5, 1709254800]) {
      raw(own, [{ t, v: 1 }])
      expect(await own.fetch(selection)).toMatchObject({ points_added: 0, windows: { failed: 1 } })
    }
    expect(await stored(own)).toEqual([])
  }))

test('TIME 37: an unknown field is stored next to the value', async () =>
  withProvider(at('03-04'), async (own) => {
    // Cast: the field is unknown to the type, too.
    shows(own, [{ ...two[0], grade: { a: 1 } } as never])
    await own.fetch(selection)
    await makeViews(own.root)
    await withViews(own.root, async (engine) => {
      expect(await engine.rows('SELECT v, extra FROM points')).toEqual([{ v: 100, extra: '{"grade":{"a":1}}' }])
    })
  }))
