import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { heldChains, heldMembers, heldRoot } from '../../src/lake/ledger/state-tree.ts'
import { heldSeries, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { compact } from '../../src/maintenance/upkeep/compact.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { readPoints } from '../../src/query/views/relations.ts'
import { withRig } from '../helpers/fetching.ts'
import { withLag } from '../helpers/lags.ts'
import { commitDeps } from '../helpers/lakes.ts'
import { reading } from '../helpers/ledgers.ts'
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
    await agrees(root)
  })
})
