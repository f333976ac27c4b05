import { expect, test } from 'vitest'
import { type Desk, withDesk } from '../helpers/importing.ts'
import { randomOf } from '../helpers/random.ts'
import { rounds } from '../helpers/tiers.ts'

const day = 86_400_000
const start = Date.UTC(2024, 2, 1)

/** A row of a file that brings the instant from which its value was known. */
interface DatedRow {
  readonly asset: string
  readonly t: number
  readonly value: number
  /** What the file says. */
  readonly told: number
}

/** A row as the lake must date it: by what was imported before. */
interface StoredRow extends DatedRow {
  readonly known: number
  readonly seen: number
}

const iso = (at: number): string => new Date(at).toISOString()

const csvOf = (rows: readonly DatedRow[]): string =>
  `asset,t,value,known_at\n${rows.map(({ asset, t, value, told }) => `${asset},${iso(t)},${value},${iso(told)}`).join('\n')}\n`

const flags = ['--as', 'score', '--interval', '24h', '--available-at', 'known_at']

/** Imports rows at an instant; returns how many were reported late. */
async function importRows(desk: Desk, rows: readonly DatedRow[], at: number): Promise<unknown> {
  const ended = await desk.take([desk.put('rows.csv', csvOf(rows)), ...flags], iso(at))
  expect(ended.message).toBe('')
  return ended.told['late']
}

/** The rows as stored, one import after the other; the number of late ones of each. */
function replay(imports: readonly { readonly at: number; readonly rows: readonly DatedRow[] }[]) {
  const stored = new Map<string, StoredRow>()
  const before = new Map<string, number>()
  const late = imports.map(({ at, rows }) => {
    let count = 0
    for (const row of rows) {
      if (stored.has(`${row.asset} ${row.t}`)) continue
      const dated = Math.max(row.told, row.t + day)
      const isLate = (before.get(row.asset) ?? -Infinity) > dated
      count += isLate ? 1 : 0
      stored.set(`${row.asset} ${row.t}`, { ...row, known: isLate ? at : dated, seen: at })
    }
    for (const { asset } of rows) before.set(asset, at)
    return count
  })
  return { stored: [...stored.values()], late }
}

test('dated rows that an earlier import lacked are late under as_of and observed_as_of', async () => {
  const random = randomOf(Number(process.env['PITLAKE_SEED'] ?? 350))
  for (let n = 0; n < rounds('PITLAKE_LATE', 2, 8); n++)
    await withDesk(async (desk) => {
      const all = ['A', 'B'].flatMap((asset) =>
        Array.from({ length: 12 }, (_, i): DatedRow => {
          const t = start + i * day
          return { asset, t, value: Math.floor(random() * 100), told: t + Math.floor(random() * 4 * 24) * 3_600_000 }
        }),
      )
      const moments = [5, 8, 11, 40].map((days) => start + days * day + 1000)
      const given = new Set<DatedRow>()
      const imports = moments
        .map((at, i) => {
          const ready = all.filter((row) => !given.has(row) && Math.max(row.told, row.t + day) <= at)
          const rows = ready.filter(() => i === moments.length - 1 || random() < 0.6)
          for (const row of rows) given.add(row)
          return {
            at,
            rows:
              i > 0 && random() < 0.5
                ? [...rows, ...(ready[0] ? [ready[0]] : [])].filter((row, k, list) => list.indexOf(row) === k)
                : rows,
          }
        })
        .filter(({ rows }) => rows.length > 0)
      const { stored, late } = replay(imports)
      expect(late.some((count) => count > 0)).toBe(true)
      for (const [i, { at, rows }] of imports.entries()) expect(await importRows(desk, rows, at)).toBe(late[i])
      using lake = await desk.open()
      const told = `asset || ' ' || epoch_ms(t) || ' ' || CAST(v AS INTEGER) || ' ' || epoch_ms(available_at) AS one`
      const listed = (rows: readonly StoredRow[]): string[] =>
        rows.map(({ asset, t, value, known }) => `${asset} ${t} ${value} ${known}`).toSorted()
      const instants = [...new Set(stored.flatMap(({ known, seen }) => [known - 1, known, seen - 1, seen]))]
      for (const at of instants.filter((_, i) => i % 3 === n % 3)) {
        for (const [variable, visible] of [
          ['as_of', ({ known }: StoredRow): boolean => known <= at],
          ['observed_as_of', ({ seen }: StoredRow): boolean => seen <= at],
        ] as const) {
          await lake.run(`SET VARIABLE ${variable} = '${iso(at)}'`)
          const rows = await lake.rows<{ one: string }>(`SELECT ${told} FROM points`)
          expect(rows.map(({ one }) => one).toSorted(), `${variable} ${iso(at)}`).toEqual(
            listed(stored.filter(visible)),
          )
          await lake.run(`RESET VARIABLE ${variable}`)
        }
      }
    })
})

/**
 * A third row of a series that comes with the second import on day nine, by its `t` and its instant; whether it is
 * late.
 */
const thirds: readonly (readonly [asset: string, t: number, told: number, late: boolean])[] = [
  ['between those before', start + day, start + 2 * day, true],
  ['behind those before', start + 3 * day, start + 4 * day, true],
  ['ahead of those before', start - day, start, true],
  ['before its interval ends', start + 7 * day, start + 6 * day, false],
  ['one millisecond before the last import', start + 3 * day, start + 8 * day - 1, true],
  ['at the last import', start + 3 * day, start + 8 * day, false],
  ['an old t known after the last import', start + day, start + 9 * day - 1, false],
]

test('a row is late if and only if an earlier import of its series could have had it', async () => {
  await withDesk(async (desk) => {
    const first = thirds.flatMap(([asset]) =>
      [0, 2].map((i): DatedRow => ({ asset, t: start + i * day, value: i, told: start + (i + 1) * day })),
    )
    expect(await importRows(desk, first, start + 8 * day)).toBe(0)
    const at = start + 9 * day
    const more = thirds.map(([asset, t, told]): DatedRow => ({ asset, t, value: 7, told }))
    const another = { asset: 'of another series', t: start + day, value: 7, told: start + 2 * day }
    expect(await importRows(desk, [...first, ...more, another], at)).toBe(thirds.filter(([, , , late]) => late).length)
    const sql = `SELECT asset || ' ' || epoch_ms(available_at) || ' ' || basis || ' ' || epoch_ms(computed_at) AS x FROM points WHERE v = 7`
    const wanted = [...thirds, [another.asset, another.t, another.told, false] as const].map(
      ([asset, t, told, late]) =>
        `${asset} ${late ? at : Math.max(told, t + day)} ${late ? 'observed' : 'provider'} ${told}`,
    )
    const stored = (await desk.rows(sql)).map((row) => row['x'] as string)
    expect(stored.toSorted()).toEqual(wanted.toSorted())
    expect(await importRows(desk, [...first, ...more], at + day)).toBe(0)
    expect((await desk.run(['doctor'], iso(at + day))).code).toBe(0)
  })
})

test('files imported month by month are late in one sitting, and in time each after its month', async () => {
  const months = [0, 1, 2].map((m) =>
    [1, 15].map((date): DatedRow => {
      const t = Date.UTC(2024, m, date)
      return { asset: 'A', t, value: m, told: t + day + 3_600_000 }
    }),
  )
  const ends = [1, 2, 3].map((m) => Date.UTC(2024, m, 1))
  for (const [moments, wanted] of [
    [ends, [0, 0, 0]],
    [[1, 2, 3].map((m) => Date.UTC(2026, 5, 1, m)), [0, 2, 2]],
  ] as const)
    await withDesk(async (desk) => {
      const late: unknown[] = []
      for (const [i, rows] of months.entries()) late.push(await importRows(desk, rows, moments[i] ?? 0))
      expect(late).toEqual(wanted)
    })
  await withDesk(async (desk) => {
    const files = months.map((rows, i) => desk.put(`m${i}.csv`, csvOf(rows)))
    expect((await desk.take([...files, ...flags], '2026-06-01T00:00:00Z')).told).toMatchObject({
      points_added: 6,
      late: 0,
    })
    const told = desk.put(
      'more.csv',
      csvOf([{ asset: 'A', t: Date.UTC(2024, 0, 20), value: 9, told: Date.UTC(2024, 0, 22) }]),
    )
    const words = await desk.run(['import', told, ...flags], '2026-06-02T00:00:00Z')
    expect(words.out).toContain('1 point added, 1 late of 1 row')
    expect(words.notes).toContain('1 row is late')
  })
})
