import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { checkHead } from '../../src/trust/heads/check.ts'
import { completeState } from '../../src/trust/heads/complete.ts'
import { headNote, headOf } from '../../src/trust/heads/head.ts'
import { seriesNumber } from '../../src/lake/ledger/apply.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { heldMonths } from '../../src/lake/ledger/month-digests.ts'
import { heldChains, heldMembers, heldRoot } from '../../src/lake/ledger/state-tree.ts'
import { heldSeries, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { compact } from '../../src/maintenance/upkeep/compact.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { readPoints } from '../../src/query/views/relations.ts'
import { withRig } from '../helpers/fetching.ts'
import { withKept } from '../helpers/kept-lakes.ts'
import { withLag } from '../helpers/lags.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { reading, writing } from '../helpers/ledgers.ts'
import { type HeldPoint, ms, stepsOf } from '../helpers/record-twin.ts'

const day = 86_400
const sha = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex')

/** Every month of every series as the page tells it: `series month` to `points chain`, from the points alone. */
async function twin(root: string): Promise<Map<string, string>> {
  const [files, series] = await reading(root, (ledger) => [
    liveFiles(ledger, { table: 'points' }),
    [...heldSeries(ledger).values()],
  ])
  using engine = await Engine.open()
  const rows = (await engine.rows(
    `SELECT metric, asset, currency, exchange, network, interval, epoch_us(t)::DOUBLE AS t, epoch_us(available_at)::DOUBLE AS available,
       epoch_us(observed_at)::DOUBLE AS seen, epoch_us(computed_at)::DOUBLE AS computed, epoch_us(available_rule_at)::DOUBLE AS ruled,
       basis, o, extra, v FROM ${readPoints(root, files)}`,
  )) as readonly (HeldPoint & Row)[]
  const months = Map.groupBy(rows, (row) => {
    const own = series.find(
      (one) =>
        ['metric', 'asset', 'currency', 'exchange', 'network'].every((key) => Reflect.get(one, key) === row[key]) &&
        (one.settled ?? one.interval) === row['interval'],
    )
    return `${own?.id} ${new Date(ms(row.t)).toISOString().slice(0, 7)}`
  })
  const chained = (own: readonly HeldPoint[]): string =>
    stepsOf(own).reduce((chain, step) => `b${sha(`${chain}\n${step}`)}`, '')
  return new Map([...months].map(([month, own]) => [month, `${own.length} ${chained(own)}`]))
}

const held = (ledger: Ledger): Map<string, string> =>
  new Map(
    [...heldSeries(ledger).keys()].flatMap((id) =>
      (heldChains(ledger, [id]).get(id) ?? []).map(([month, told]) => [`${id} ${month}`, told]),
    ),
  )

/** The value of a tree over named values, by the definition alone. */
function valueOf(members: readonly (readonly [string, string])[]): string {
  const hashed = (bytes: string): string =>
    createHash('sha256').update(Buffer.from(bytes, 'latin1')).digest().toString('latin1')
  const rootOver = (leaves: readonly string[]): string => {
    if (leaves.length < 2) return leaves[0] ?? hashed('')
    const left = 2 ** Math.floor(Math.log2(leaves.length - 1))
    return hashed(`\u0001${rootOver(leaves.slice(0, left))}${rootOver(leaves.slice(left))}`)
  }
  const sorted = members.toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  const leaves = sorted.map(([name, value]) => hashed(Buffer.from(`\0${name}\n${value}`).toString('latin1')))
  return `${leaves.length} ${Buffer.from(rootOver(leaves), 'latin1').toString('hex')}`
}

/** The root of the state: its series by these months, all else as the ledger has it. */
async function rootBy(root: string, months: ReadonlyMap<string, string>): Promise<string> {
  return await reading(root, (ledger) => {
    const series = Map.groupBy(months, ([name]) => name.slice(0, -8))
    const values = [...series].map(([id, own]): [string, string] => {
      return [id, valueOf(own.map(([name, told]) => [name.slice(-7), told]))]
    })
    const groups = Map.groupBy(values, ([id]) => `series ${heldSeries(ledger).get(id)?.metric}`)
    const others = heldMembers(ledger).filter(([name]) => !name.startsWith('series '))
    const rest = others.map(([name]) => [name, valueOf(heldMembers(ledger, name))] as const)
    return valueOf([...rest, ...[...groups].map(([name, own]) => [name, valueOf(own)] as const)])
  })
}

async function agrees(root: string): Promise<string> {
  const told = await reading(root, held)
  const own = await twin(root)
  expect(own.size).toBeGreaterThan(2)
  expect(Object.fromEntries(told)).toEqual(Object.fromEntries(own))
  // An index that is made anew from the journal has the same tree.
  using made = await Ledger.inMemory(root)
  const stateRoot = await reading(root, heldRoot)
  expect(stateRoot).toBe(await rootBy(root, own))
  expect(heldRoot(made)).toBe(stateRoot)
  return stateRoot
}

/** Tells all months as an earlier program did: by other sums, and chains without a letter before them. */
async function ofLines(ledger: Ledger, deps = commitDeps()): Promise<void> {
  const { provider } = ledger.head()
  const progress = [...heldSeries(ledger).values()].map(({ id, first_t, last_t }) => {
    const months = [...heldMonths(ledger, seriesNumber(ledger, id) ?? 0).keys()]
    const each = (text: (month: string) => string) => Object.fromEntries(months.map((one) => [one, text(one)]))
    const bounds = { first_t: first_t ?? 0, last_t: last_t ?? 0 }
    return { series: id, points: 0, ...bounds, digests: each(() => '0 00000000deadbeef'), chains: each(sha) }
  })
  await commit(ledger, { job: 'tree', run: 'lines', provider: provider ?? { synthetic: true }, progress }, deps)
}

test('the state tells every point of every month, whatever is done to files', async () => {
  const begun = 1_709_500_000
  await withRig(begun, async ({ root, clock, fetch, faults }) => {
    const selection = {
      paths: ['addresses/active_count_pit', 'supply/current_pit'],
      assets: ['BTC', 'ETH'],
      intervals: ['24h'] as const,
      since: begun - 70 * day,
      until: begun + 20 * day,
    }
    const world = () => ({
      ...commitDeps({ nowMicros: () => clock.now * 1_000_000 }),
      signal: new AbortController().signal,
      threads: 1,
    })
    faults('late@supply/current_pit:t=2024-02-20,shown=2024-03-05T12:00Z')
    // Two commits within one millisecond are one step.
    const still = { deps: { nowMicros: () => clock.now * 1_000_000 } }
    for (const days of [20, 45]) await fetch({ ...selection, since: begun - days * day }, still)
    await fetch(selection, still)
    await agrees(root)
    for (let n = 0; n < 3; n++) {
      clock.now += day
      await fetch(selection)
    }
    const grown = await agrees(root)
    await compact(root, world())
    expect(await agrees(root)).toBe(grown)
    clock.now += day
    await redate(root, withLag('addresses/active_count_pit', 5400, 'rule'), world())
    expect(await agrees(root)).not.toBe(grown)
    clock.now += day
    await fetch(selection)
    const whole = await agrees(root)
    // What comes to a lake whose chains are of lines goes on from none of them.
    await writing(root, async (ledger) => await ofLines(ledger, world()))
    expect(await reading(root, heldRoot)).not.toBe(whole)
    clock.now += day
    await fetch(selection)
    await writing(root, async (ledger) => await completeState(ledger, commitDeps()))
    await agrees(root)
  })
})

test.each(['1/vacuumed', '2/redated'])(
  'a lake of layout %s tells its points once it was opened for writing',
  async (kept) => {
    await withKept(kept, async (root) => {
      const files = await reading(root, (ledger) => liveFiles(ledger).map(({ path, sha256 }) => [path, sha256]))
      const { version } = await reading(root, (ledger) => ledger.head())
      await writing(root, async (ledger) => await completeState(ledger, commitDeps()))
      await agrees(root)
      await writing(root, async (ledger) => {
        expect(ledger.head()).toMatchObject({ version: version + 2, schema: 4 })
        await completeState(ledger, commitDeps())
        expect(ledger.head().version).toBe(version + 2)
        expect(liveFiles(ledger).map(({ path, sha256 }) => [path, sha256])).toEqual(files)
      })
    })
  },
)

test('a lake whose chains are of lines gets those of records, and its heads stay', async () => {
  await withKept('3/stamped', async (root) => {
    const digests = (ledger: Ledger) =>
      [...heldSeries(ledger)].map(([id]) => [id, [...heldMonths(ledger, seriesNumber(ledger, id) ?? 0)]])
    const [whole, head] = await writing(root, async (ledger) => {
      await completeState(ledger, commitDeps())
      const told = digests(ledger)
      await ofLines(ledger)
      expect(digests(ledger)).not.toEqual(told)
      return [told, headOf(ledger)]
    })
    using made = await Ledger.inMemory(root)
    expect(heldRoot(made)).toBe(await reading(root, heldRoot))
    await writing(root, async (ledger) => {
      await completeState(ledger, commitDeps())
      expect(digests(ledger)).toEqual(whole)
      const { verdict } = await checkHead(ledger, { head, note: headNote(head, undefined) }, undefined)
      expect([verdict, headOf(ledger).size]).toEqual(['extends', head.size + 1])
    })
    await agrees(root)
  })
})
