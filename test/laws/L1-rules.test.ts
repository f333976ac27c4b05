import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Engine } from '../../src/lake/store/engine.ts'
import {
  endOf,
  type HandRule,
  historyAfter,
  type Owed,
  owedOf,
  ruleInstant,
  type Spell,
  startAfter,
  startAt,
  type Told,
} from '../helpers/time-twin.ts'
import { cataloguedRule, handRules, type Row, rowYaml } from '../helpers/hand-rules.ts'
import { seeds } from '../helpers/tiers.ts'
import { type Line, type TimedLake, withTimedLake } from '../helpers/lakes/timed-lake.ts'
import { withViews } from '../helpers/views.ts'

const at = (text: string): number => Date.parse(text.length === 10 ? `${text}T00:00:00Z` : `${text}Z`) / 1000
const hour = 3600
const day = 86_400
const spells: readonly Exclude<Spell, '3month'>[] = ['10m', '1h', '24h', '1w', '1month']

/** A point as the views show it; instants in microseconds. */
type Shown = {
  readonly available: bigint
  readonly observed: bigint
  readonly basis: string
  readonly computed: bigint | null
  readonly v: number | null
}

async function shownPoints(engine: Engine): Promise<Map<string, Shown>> {
  const rows = await engine.rows<Shown & { readonly line: string }>(
    `SELECT concat_ws(' ', metric, asset, "interval", epoch(t)::BIGINT) AS line, epoch_us(available_at) AS available, v, basis,
      epoch_us(observed_at) AS observed, epoch_us(computed_at) AS computed FROM points`,
  )
  return new Map(rows.map(({ line, ...point }) => [line, point]))
}

/** A point of the lake as the twin would have it, in microseconds. */
interface Truth extends Owed {
  readonly us: bigint
  readonly ruled: bigint
}

const placeholders = /lendingprotocol|paymentapp|usexchange/

/** The path under which a series is stored: the provider's own one. */
const storedPath = (path: string): string => (placeholders.test(path) ? `real/${path}` : path)

/** Holds every stored point against the twin: none more, none fewer, each with its instants and its basis. */
async function compared(
  engine: Engine,
  lake: TimedLake,
  lines: readonly Line[],
  rules: (line: Line) => readonly HandRule[],
  backfill = false,
): Promise<Map<Line, Truth[]>> {
  const shown = await shownPoints(engine)
  const truths = new Map<Line, Truth[]>()
  const [got, want]: Record<string, unknown>[] = [{}, {}]
  for (const line of lines) {
    const interval = line.interval ?? '24h'
    const answers = lake.answersTo(line)
    const own: Truth[] = []
    for (const owed of owedOf(line.points, rules(line), interval, answers)) {
      const key = `${storedPath(line.path)} ${line.asset} ${interval} ${owed.t}`
      const point = shown.get(key)
      const observed = point?.observed ?? 0n
      const held = BigInt(Math.round((owed.available === 'observed' ? 0 : owed.available) * 1e6))
      const rule = BigInt(owed.rule) * 1_000_000n
      const strict = owed.available === 'observed' ? (observed > rule ? observed : rule) : held
      const stands = backfill && owed.history
      own.push({ ...owed, us: stands ? rule : strict, ruled: rule })
      const told = owed.computed === null ? null : BigInt(Math.round(owed.computed * 1e6))
      want![key] = [
        owed.v,
        stands ? rule : strict,
        stands ? 'backfilled' : owed.basis,
        told,
        answers[owed.brought]?.asked,
      ]
      if (point)
        got![key] = [point.v, point.available, point.basis, point.computed, Number(point.observed / 1_000_000n)]
    }
    truths.set(line, own)
  }
  for (const [key, point] of shown) got![key] ??= point
  expect(got).toEqual(want)
  return truths
}

/** The newest of the points known at an instant, by looking at each; `n` of them. */
function knownAt(points: readonly Truth[], us: bigint, n: number): Truth[] {
  const known: Truth[] = []
  for (const point of points) if (point.us <= us) known.push(point)
  return known.toSorted((a, b) => b.t - a.t).slice(0, n)
}

/** Asks all joins at each arrival and a microsecond around it, and compares with what a nested loop finds. */
async function joined(engine: Engine, truths: ReadonlyMap<Line, readonly Truth[]>): Promise<number> {
  let asked = 0
  for (const interval of spells) {
    const lines = [...truths].filter(([line]) => (line.interval ?? '24h') === interval)
    if (lines.length === 0) continue
    const instants = new Set(lines.flatMap(([, points]) => points.flatMap(({ us }) => [us - 1n, us, us + 1n])))
    const assets = [...new Set(lines.map(([{ asset }]) => asset))]
    const rows = assets.flatMap((asset) => [...instants].map((us) => `('${asset}', make_timestamptz(${us}))`))
    await engine.run(`CREATE OR REPLACE TEMP TABLE d AS SELECT * FROM (VALUES ${rows.join(', ')}) AS d (asset, ts)`)
    const paths = [...new Set(lines.map(([{ path }]) => path))]
    const about = `asset, epoch_us(ts) AS us, epoch(t)::BIGINT AS t, epoch_us(available_at) AS available, v, epoch_us(TIMESTAMP '1970-01-01' + age) AS age`
    const names = `[${paths.map((path) => `'${path}'`).join(', ')}]`
    const long = await engine.rows(`SELECT metric, ${about} FROM pit_long('d', ${names}, '${interval}')`)
    const answers = (found: Record<string, unknown>[]) =>
      found
        .map(({ asset, us, t, available, v, age }) => [asset, us, t, available, v, age].map(String).join(' '))
        .toSorted()
    for (const path of paths) {
      const own = lines.filter(([line]) => line.path === path)
      const owed = (n: number): string[] =>
        own
          .flatMap(([{ asset }, points]) =>
            [...instants].flatMap((us) => {
              const known = knownAt(points, us, n)
              if (known.length === 0) return [`${asset} ${us} null null null null`]
              return known.map(
                (p) => `${asset} ${us} ${p.t} ${p.us} ${p.v} ${us - BigInt(endOf(p.t, interval)) * 1_000_000n}`,
              )
            }),
          )
          .toSorted()
      expect(answers(await engine.rows(`SELECT ${about} FROM pit_join('d', '${path}', '${interval}')`))).toEqual(
        owed(1),
      )
      expect(answers(long.filter(({ metric }) => metric === path))).toEqual(owed(1))
      const window = await engine.rows(`SELECT ${about} FROM pit_window('d', '${path}', '${interval}', 3)`)
      expect(answers(window)).toEqual(owed(3))
      asked += 3 * instants.size
    }
  }
  return asked
}

/** The grids that the description names by a letter. */
const letters: Readonly<Record<string, readonly Spell[]>> = {
  D: ['24h'],
  HD: ['1h', '24h'],
  MHD: ['10m', '1h', '24h'],
  FULL: spells,
}

/** Every endpoint of the description with its intervals; null where it lists none. */
const described = readFileSync(new URL('../golden/catalogue/description.tsv', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .flatMap((row) => {
    const [path = '', letter = '', , missing = ''] = row.split('\t')
    const own = /frequency/.test(missing) ? [null] : (letters[letter] ?? [null])
    return own.map((interval) => ({ path, interval }))
  })

/** What a provider with a name for each placeholder needs. */
function mapped(paths: readonly string[]): string {
  const real = paths.filter((path) => placeholders.test(path)).map((path) => `${path}: ${storedPath(path)}`)
  return `  exchanges: { options_exchange_1: real-1 }\n  paths: { ${[...new Set(real)].join(', ')} }\n`
}

test('every rule of the catalogue at every interval, over leap days, weeks and years, and what comes late', async () => {
  const edges: Readonly<Record<Spell, readonly string[]>> = {
    '10m': ['2024-02-29T23:30:00', '2024-12-31T23:30:00', '2025-01-05T23:30:00'],
    '1h': ['2024-02-28T22:00:00', '2024-12-31T22:00:00', '2025-01-05T22:00:00'],
    '24h': ['2024-02-27', '2024-12-29', '2025-01-04'],
    '1w': ['2024-02-19', '2024-12-16'],
    '1month': ['2023-12-01', '2024-10-01'],
    '3month': [],
  }
  const first = at('2025-01-08T13:00:00')
  const second = first + 8 * day
  const lines = described.map(({ path, interval }, n): Line => {
    const spell = interval ?? '24h'
    const starts = edges[spell].flatMap((edge) => [0, 1, 2, 3].map((i) => startAfter(at(edge), spell, i)))
    // Every third point is there only at the second look, the newest of all by its rule.
    const points = starts.map((t, i) => ({ t, v: n * 100 + i, shown: i % 3 === 1 ? second - hour : endOf(t, spell) }))
    const fresh = startAfter(startAt(second, spell), spell, -1)
    const newest = starts.includes(fresh) ? [] : [{ t: fresh, v: n, shown: endOf(fresh, spell) }]
    return { path, asset: 'BTC', interval, points: [...points, ...newest] }
  })
  const since = {
    '10m': '2024-02-28',
    '1h': '2024-02-28',
    '24h': '2024-02-20',
    '1w': '2024-02-05',
    '1month': '2023-11-01',
  }
  const blocks = spells.map((spell) => `  - { assets: [BTC], intervals: [${spell}], since: ${since[spell]} }\n`)
  const paths = described.map(({ path }) => path)
  const yaml = `metrics:\n${basics}${mapped(paths)}select:\n${blocks.join('')}`
  await withTimedLake(yaml, { lines }, async (lake) => {
    await lake.fetchAt(first)
    await lake.fetchAt(second)
    await lake.views()
    await withViews(lake.root, async (engine) => {
      const truths = await compared(engine, lake, lines, ({ path, interval }) => [
        cataloguedRule(path, interval ?? '24h'),
      ])
      const all = [...truths.values()].flat()
      expect(truths.size).toBe(lines.length)
      expect([...truths.values()].filter((own) => own.length < 5)).toEqual([])
      for (const basis of ['stated', 'assumed', 'observed'])
        expect(all.filter((point) => point.basis === basis).length, basis).toBeGreaterThan(10)
    })
  })
})

const pool: readonly (readonly [string, readonly (Spell | null)[]])[] = [
  ['blockchain/block_count_pit', spells],
  ['blockchain/block_height_pit', spells],
  ['addresses/active_count_pit', spells],
  ['distribution/balance_bhutan_government_pit', ['10m']],
  ['market/btc_dominance_pit', ['24h']],
  ['signals/btc_sharpe_signal_pit', ['24h']],
  ['signals/btc_bss_indicator_1_pit', ['24h']],
  ['options/5delta_skew_call_put_all_pit', ['1h', '24h']],
  ['options/50delta_skew_call_put_all_pit', [null]],
]
const weekdays = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']

const edges = ['2024-02-29', '2024-03-01', '2023-03-01', '2025-01-06', '2024-01-01', '2021-01-04', '2024-12-31'].map(at)
const anyRule = fc
  .record({
    rule: fc.oneof(
      fc.constantFrom(0, 60, 599, 600, 1200, hour, 2 * hour, day - 1, 3 * day).map((lag) => ({ lag })),
      fc.record({ days: fc.integer({ min: 1, max: 3 }), minutes: fc.integer({ min: 0, max: 1439 }) }),
    ),
    wins: fc.boolean(),
    before: fc.option(fc.constantFrom(...edges), { nil: undefined, freq: 3 }),
  })
  .map(
    ({ rule, wins, before }): HandRule => ({
      ...rule,
      basis: 'override',
      wins,
      ...(before === undefined ? {} : { before }),
    }),
  )
const anyRow = (pattern: string): fc.Arbitrary<Row> =>
  fc
    .record({
      rule: fc.option(anyRule),
      only: fc.option(fc.subarray([...spells], { minLength: 1, maxLength: 2 })),
      own: fc.dictionary(fc.constantFrom(...spells), anyRule, { maxKeys: 2 }),
    })
    .map(({ rule, only, own }) => {
      const listed = rule === null ? null : only
      const mine = Object.entries(own).filter(
        ([interval]) => listed?.includes(interval as Exclude<Spell, '3month'>) !== true,
      )
      return { pattern, rule, only: listed, own: Object.fromEntries(mine) }
    })
const story = fc.record({
  edge: fc.constantFrom(...edges),
  offset: fc.integer({ min: 0, max: 2 * day }),
  marks: fc.constantFrom('start' as const, 'end' as const),
  weekday: fc.integer({ min: 0, max: 6 }),
  rows: fc.tuple(
    ...['blockchain/*', 'blockchain/block_count_pit', 'market/btc_dominance_pit', 'signals/*', 'options/*'].map((p) =>
      fc.option(anyRow(p)),
    ),
  ),
  stages: fc.array(
    fc.record({
      // On a rule's instant or a second beside it, or simply later.
      exact: fc.option(
        fc.record({ line: fc.nat(), slot: fc.integer({ min: 5, max: 9 }), beside: fc.integer({ min: -1, max: 1 }) }),
      ),
      later: fc.constantFrom(700, 7 * hour, day, 2 * day + hour, 8 * day, 33 * day),
      skew: fc.constantFrom(0, 0, null, -3000, -600, -1, 1, 600, 3000),
    }),
    { minLength: 2, maxLength: 3 },
  ),
  cells: fc.array(
    fc.record({
      shown: fc.constantFrom('at end', 'at end', 'by rule', 'by rule', 'in a while', 'looked for', 'early', 'never'),
      beside: fc.integer({ min: -1, max: 1 }),
      stage: fc.nat(),
      computed: fc.constantFrom('none', 'none', 'before end', 'soon', 'by rule', 'long after', 'shown'),
    }),
    { minLength: 97, maxLength: 97 },
  ),
})
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never

/** The instants of the fetches, local and of the provider, and the lines with their points. */
function told({ edge, offset, weekday, stages, cells, ...rest }: Story) {
  const rows = rest.rows.filter(
    (row): row is Row => row !== null && (row.rule !== null || Object.keys(row.own).length > 0),
  )
  const begin = edge + offset
  const shapes = pool.flatMap(([path, own]) =>
    own.flatMap((interval) => ['BTC', 'ETH'].map((asset) => ({ path, asset, interval, points: [] }))),
  )
  const slotsOf = (line: Line): number[] => {
    const spell = line.interval ?? '24h'
    const around = startAt(begin, spell, weekday)
    return Array.from({ length: 10 }, (_, i) => startAfter(around, spell, i - 7))
  }
  const looks = [{ local: begin, date: stages[0]?.skew === null ? null : begin }]
  for (const { exact, later, skew } of stages) {
    const before = looks.at(-1)?.local ?? begin
    const line = shapes[(exact?.line ?? 0) % shapes.length] as Line
    const t = slotsOf(line)[exact?.slot ?? 0] as number
    const wished = exact === null ? 0 : ruleInstant(handRules(line, rows), t, line.interval ?? '24h') + exact.beside
    const local = wished > before + 1 && wished < before + 40 * day ? wished : before + later
    looks.push({ local, date: skew === null ? null : local + skew })
  }
  let cell = 0
  const lines = shapes.map((line, n): Line => {
    const spell = line.interval ?? '24h'
    const rules = handRules(line, rows)
    const points = slotsOf(line).flatMap((t, i): Told[] => {
      const { shown, beside, stage, computed } = cells[cell++ % cells.length] as Story['cells'][number]
      if (shown === 'never' && (line.interval !== null || i > 3)) return []
      const end = endOf(t, spell)
      const rule = ruleInstant(rules, t, spell)
      const look = looks[stage % looks.length] ?? { local: 0, date: null }
      const clock = look.date ?? look.local
      const from = {
        'at end': end,
        'by rule': rule + beside,
        'in a while': end + 300,
        'looked for': Math.max(end, clock + beside),
        early: end - 60,
        never: end,
      }[shown]
      const said = {
        none: null,
        'before end': end - 3,
        soon: end + 5.25,
        'by rule': rule + beside,
        'long after': end + historyAfter[spell] / 3,
        shown: from - 0.5,
      }[computed]
      return [{ t, shown: from, v: n * 100 + i, computed: n % 3 === 0 ? said : null }]
    })
    return { ...line, points }
  })
  return { rows, looks, lines, since: (spell: Spell) => startAfter(startAt(begin, spell, weekday), spell, -9) }
}

const basics = '  metadata: false\n  concurrency: 1\n  requests_per_minute: 1000000\n'

test.each(seeds('PITLAKE_RULES', 3, Number(process.env['PITLAKE_RULES_SEED'] ?? 1)))(
  'any rules, clocks, marks and arrivals, and all joins, against brute force: seed %i',
  async (seed) => {
    const [plot] = fc.sample(story, { seed, numRuns: 1 }) as [Story]
    const { rows, looks, lines, since } = told(plot)
    const blocks = spells.map((spell) => {
      const own = pool.filter(([, list]) => list.includes(spell) || (spell === '24h' && list.includes(null)))
      const first = new Date(since(spell) * 1000).toISOString()
      return `  - { assets: [BTC, ETH], intervals: [${spell}], since: ${first}, paths: [${own.map(([path]) => path).join(', ')}] }\n`
    })
    const provider = `  timestamp: interval_${plot.marks}\n  week_start: ${weekdays[plot.weekday]}\n${mapped([])}`
    const availability = rows.length === 0 ? '' : `  availability:\n${rows.map(rowYaml).join('')}`
    const yaml = `metrics:\n${basics}${provider}${availability}select:\n${blocks.join('')}`
    await withTimedLake(yaml, { lines, marks: plot.marks }, async (lake) => {
      for (const { local, date } of looks) await lake.fetchAt(local, date)
      await lake.views()
      await withViews(lake.root, async (engine) => {
        const rules = (line: Line) => handRules(line, rows)
        expect(await joined(engine, await compared(engine, lake, lines, rules))).toBeGreaterThan(1000)
        await engine.run(`SET VARIABLE backfill = 'rule'`)
        await compared(engine, lake, lines, rules, true)
      })
    })
  },
)
