import { expect, test } from 'vitest'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { randomOf } from '../helpers/random.ts'
import { rounds } from '../helpers/tiers.ts'

const hour = 3_600_000

const start = Date.UTC(2024, 2, 1)

/** One bar of a file, and when each of its parts could be known. */
interface Bar {
  readonly asset: string
  readonly t: number
  readonly parts: Readonly<Record<string, number>>
  readonly known: Readonly<Record<string, number>>
}

const parts = ['open', 'high', 'low', 'close']

/** Rules of parts: the beginning or the end of the hour, and so many minutes. */
function drawRules(random: () => number): Record<string, readonly [from: 'start' | 'end', minutes: number]> {
  const draw = () => [random() < 0.5 ? 'start' : 'end', Math.floor(random() * 3) * 40] as const
  return Object.fromEntries(parts.map((part) => [part, draw()]))
}

/** What a file holds, and what of it comes only with a later import. */
async function imported(desk: Desk, random: () => number): Promise<Bar[]> {
  const rules = drawRules(random)
  const rule = parts.map((part) => `${part}=${rules[part]?.[0]}+${rules[part]?.[1]}m`).join(',')
  const later = Date.UTC(2024, 5, 2)
  const bars = ['A', 'B'].flatMap((asset) =>
    Array.from({ length: 8 }, (_, n): Bar & { late: boolean } => {
      const t = start + n * hour
      const late = n > 0 && n < 7 && random() < 0.25
      const known = parts.map((part) => {
        const [from, minutes] = rules[part] ?? ['end', 0]
        return [part, late ? later : t + (from === 'end' ? hour : 0) + minutes * 60_000]
      })
      const own = Object.fromEntries(parts.map((part) => [part, Math.floor(random() * 100)]))
      return { asset, t, parts: own, known: Object.fromEntries(known), late }
    }),
  )
  const text = (some: readonly Bar[]): string =>
    [
      `asset,t,${parts.join(',')}`,
      ...some.map(
        ({ asset, t, parts: own }) =>
          `${asset},${new Date(t).toISOString()},${parts.map((part) => own[part]).join(',')}`,
      ),
    ].join('\n')
  const argv = ['--as', 'bars', '--components', parts.join(','), '--available', rule]
  const file = desk.put('bars.csv', text(bars.filter(({ late }) => !late)))
  expect((await desk.take([file, ...argv], '2024-06-01T00:00:00Z')).message).toBe('')
  desk.put('bars.csv', text(bars))
  expect((await desk.take([file, ...argv], '2024-06-02T00:00:00Z')).message).toBe('')
  return bars
}

/** The newest bar of which a part, or the whole, was known. */
function newest(bars: readonly Bar[], asset: string, at: number, part: string | null): string {
  const knownAt = (bar: Bar): number =>
    part === null ? Math.max(...Object.values(bar.known)) : (bar.known[part] ?? Infinity)
  const found = bars.filter((bar) => bar.asset === asset && knownAt(bar) <= at).toSorted((a, b) => b.t - a.t)[0]
  return found === undefined ? 'NULL' : `${found.t} ${part === null ? '' : found.parts[part]}`
}

const instants = (bars: readonly Bar[]): number[] => [...new Set(bars.flatMap(({ known }) => Object.values(known)))]

test('TIME 61: each component of a bar is known by its clock and never earlier', async () => {
  const random = randomOf(39)
  for (let n = 0; n < rounds('PITLAKE_OWN', 1, 4); n++)
    await withDesk(async (desk) => {
      const bars = await imported(desk, random)
      using lake = await desk.open()
      // Milliseconds hold no microsecond: decisions lie at and one millisecond around each instant.
      const ats = instants(bars).flatMap((at) => [at - 1, at, at + 1])
      const decisions = `d AS (SELECT asset, make_timestamptz(ms * 1000) AS ts, ms FROM (VALUES ${ats.flatMap((at) => ['A', 'B'].map((asset) => `('${asset}', ${at})`)).join(', ')}) AS x (asset, ms))`
      const told = `asset || ' ' || ms || ' ' || coalesce(epoch_ms(t) || ' ' || coalesce(CAST(v AS INTEGER)::VARCHAR, ''), 'NULL') AS one`
      for (const part of [...parts, null]) {
        const expected = ats.flatMap((at) =>
          ['A', 'B'].map((asset) => `${asset} ${at} ${newest(bars, asset, at, part)}`.trim()),
        )
        const name = part === null ? 'own/bars' : `own/bars#/${part}`
        const option = part === null ? '' : `, component := '/${part}'`
        for (const join of [
          `pit_join('d', '${name}', '1h')`,
          `pit_join('d', 'own/bars', '1h'${option})`,
          `pit_long('d', ['${name}'], '1h')`,
          `pit_long('d', ['own/bars'], '1h'${option})`,
          `(SELECT * FROM pit_window('d', '${name}', '1h', 1))`,
        ]) {
          const rows = await lake.rows<{ one: string }>(`WITH ${decisions} SELECT ${told} FROM ${join}`)
          const got = rows.map(({ one }) => one.trim())
          expect(got.toSorted(), join).toEqual(expected.toSorted())
        }
      }
    })
})

test('user data under as_of look as in a lake that stores nothing later', async () => {
  const random = randomOf(7)
  await withDesk(async (desk) => {
    const bars = await imported(desk, random)
    using lake = await desk.open()
    const all = bars.flatMap((bar) => parts.map((part) => ({ ...bar, part, at: bar.known[part] ?? 0 })))
    for (const at of instants(bars)
      .flatMap((one) => [one - 1, one])
      .filter((_, n) => n % 3 === 0)) {
      await lake.run(`SET VARIABLE as_of = '${new Date(at).toISOString()}'`)
      const components = await lake.rows<{ one: string }>(
        `SELECT asset || ' ' || epoch_ms(t) || ' ' || component || ' ' || CAST(v AS INTEGER) || ' ' || epoch_ms(available_at) AS one FROM components`,
      )
      const wanted = all
        .filter((one) => one.at <= at)
        .map((one) => `${one.asset} ${one.t} /${one.part} ${one.parts[one.part]} ${one.at}`)
      expect(components.map(({ one }) => one).toSorted()).toEqual(wanted.toSorted())
      const points = await lake.rows<{ one: string }>(`SELECT asset || ' ' || epoch_ms(t) AS one FROM points`)
      const whole = bars.filter(({ known }) => Math.max(...Object.values(known)) <= at)
      expect(points.map(({ one }) => one).toSorted()).toEqual(whole.map(({ asset, t }) => `${asset} ${t}`).toSorted())
    }
  })
})
