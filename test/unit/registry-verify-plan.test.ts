import { expect, test } from 'vitest'
import type { StoredEntity } from '../../src/sources/registry/history.ts'
import { chooseChecks, filterFields, type Holding, narrowestList } from '../../src/sources/registry/verify-plan.ts'
import { resources } from '../helpers/registry-world.ts'

const found = resources.get('issuers')
if (found === undefined) throw new Error('no issuers')
const issuers = found

const entity = (id: string, own: Readonly<Record<string, string>> | null): StoredEntity => {
  const fields = filterFields(issuers).map(([, field]) => own?.[field] ?? null)
  return { id, open: own !== null, hash: own ? id : null, at: 1, product: null, verified: false, fields }
}

/** Issuers with what they say by filter; `null`: gone. */
function holding(said: Readonly<Record<string, Readonly<Record<string, string>> | null>>, pageLimit = 2): Holding {
  const held = Object.entries(said).map(([id, own]) => [id, entity(id, own)] as const)
  return {
    resources: [issuers],
    storedEntities: new Map([['issuers', new Map(held)]]),
    seenLists: new Map(),
    tried: new Map(),
    pageLimit,
  }
}

const said = {
  a: { jurisdiction: 'CH', status: 'active', custodian: 'X' },
  b: { jurisdiction: 'CH', status: 'active', custodian: 'Y' },
  c: { jurisdiction: 'CH', status: 'retired' },
  d: { jurisdiction: 'SG', status: 'active' },
  gone: null,
}

test('the narrowest list that shows a record is that of the filter with the fewest others', () => {
  const list = (id: string) => {
    const { filters, expected } = narrowestList(issuers, id, holding(said))
    return [filters, [...expected].join('')]
  }
  expect(list('a')).toEqual([{ custodian: 'X' }, 'a'])
  expect(list('c')).toEqual([{ status: 'retired' }, 'c'])
  expect(list('d')).toEqual([{ jurisdiction: 'SG' }, 'd'])
  expect(narrowestList(issuers, 'z', holding({ ...said, z: {} }))).toMatchObject({ filters: {}, requests: 3 })
})

test('records and lists alternate within the budget, the least recently requested first', () => {
  const at = (address: string, instant: number) => [address, { at: instant, etag: null, digest: '' }] as const
  const seen = new Map([at('/issuers/a', 30), at('/issuers/b', 10), at('/issuers/c', 20), at('/issuers', 5)])
  const asked = (budget: number | null, begun = 100): string[] => {
    const { checks, held } = chooseChecks(
      { ...holding(said, 10), seenLists: seen },
      { budget, spreadDays: null, begun },
    )
    expect(held).toBe(12)
    return checks.map(({ address }) => address)
  }
  const records = (all: readonly string[]): string[] => all.filter((one) => one.startsWith('/issuers/')).slice(2)
  expect(records(asked(null))).toEqual(['/issuers/b', '/issuers/c', '/issuers/a'])
  expect(asked(4)).toEqual(asked(null).slice(0, 4))
  // What was found since the round began is done.
  expect(records(asked(null, 30))).toEqual(['/issuers/b', '/issuers/c'])
  expect(asked(null, 5)).not.toContain('/issuers')
})

test('daily runs send the share of requests with which thirty of them compare everything, at least ten', () => {
  const records = (count: number): Readonly<Record<string, Readonly<Record<string, string>>>> =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`r${n}`, { jurisdiction: 'CH' }]))
  const requestsOf = (count: number, budget: number | null, spreadDays: number | null): number =>
    chooseChecks(holding(records(count), 100), { budget, spreadDays, begun: 100 }).checks.reduce(
      (sum, { requests }) => sum + requests,
      0,
    )
  expect(requestsOf(50, 60, null)).toBeGreaterThan(45)
  expect(requestsOf(50, 60, 30)).toBe(10)
  expect(requestsOf(900, 60, 30)).toBeGreaterThanOrEqual(30)
  expect(requestsOf(900, 60, 30)).toBeLessThan(40)
  expect(requestsOf(9000, 60, 30)).toBe(60)
  expect(requestsOf(50, null, 30)).toBeGreaterThan(50)
})

test('an address that never comes out as held goes to the end of the queue like any other', () => {
  const found = new Map([['/issuers/b', { at: 10, etag: null, digest: '' }]])
  const tried = new Map([
    ['/issuers/a', 40],
    ['/issuers/c', 20],
  ])
  const { checks } = chooseChecks(
    { ...holding(said, 10), seenLists: found, tried },
    { budget: null, spreadDays: null, begun: 100 },
  )
  const records = checks.flatMap(({ kind, address }) => (kind === 'record' ? [address] : []))
  expect(records.slice(2)).toEqual(['/issuers/b', '/issuers/c', '/issuers/a'])
})
