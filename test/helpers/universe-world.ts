import { randomOf } from './random.ts'

/*
 * A registry of a hundred records over sixty hourly polls: records change, go and come back at drawn polls.
 * `knownRecords` tells what was known of them by walking through all that happened.
 */

export const hour = 3_600_000
export const from = Date.UTC(2024, 0, 10)
export const polls = 60
export const at = (poll: number): string => new Date(from + poll * hour).toISOString()

/** One state of one record: from its poll on, until the next of the same record; gone where there are no fields. */
export interface Step {
  readonly id: string
  readonly poll: number
  readonly fields: Readonly<Record<string, string | null>> | null
}

const random = randomOf(24)
const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T

/** Records that change, go and come back at drawn polls; a third is there from the first. */
function drawn(ids: readonly string[], fields: () => Step['fields']): Step[] {
  return ids.flatMap((id, n) => {
    const steps = new Map<number, Step['fields']>([[n % 3 === 0 ? 0 : Math.floor(random() * polls), fields()]])
    const first = [...steps.keys()][0] ?? 0
    for (let change = 0; change < 5; change += 1) {
      const poll = first + 1 + Math.floor(random() * polls)
      if (poll < polls) steps.set(poll, random() < 0.2 ? null : fields())
    }
    return [...steps].toSorted(([a], [b]) => a - b).map(([poll, own]) => ({ id, poll, fields: own }))
  })
}

const names = (letter: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${letter}${n}`)
export const world = {
  issuers: drawn(names('i', 4), () => ({
    name: pick(['Acme', 'Bolt']),
    status: pick(['active', 'inactive']),
    jurisdiction: pick(['CH', 'US', null]),
  })),
  assets: drawn(names('a', 5), () => ({
    name: pick(['Gold', 'Bill']),
    asset_class: pick(['treasury', 'equity', null]),
    ticker: pick(['T', 'E']),
  })),
  products: drawn(names('p', 24), () => ({
    name: pick(['One', 'Two']),
    symbol: pick(['BTC', 'ETH', 'XYZ', null]),
    isin: pick(['XX1', null]),
    status: pick(['active', 'inactive']),
    issuer_id: pick([...names('i', 4), 'nobody', null]),
    asset_id: pick([...names('a', 5), null]),
  })),
  deployments: drawn(names('d', 30), () => ({
    product_id: pick(names('p', 24)),
    chain_id: pick(['1', '137']),
    address: pick(['0xa', '0xb']),
    status: pick(['active', 'inactive']),
    verification_status: 'verified',
  })),
}

/** Fields of a record. */
export type State = Readonly<Record<string, string | null>>

/** What was known of a record at an instant, by going through its steps one after the other. */
export function knownRecords(steps: readonly Step[], ms: number): Map<string, State> {
  const found = new Map<string, State>()
  for (const { id, poll, fields } of steps.toSorted((a, b) => a.poll - b.poll)) {
    if (from + poll * hour > ms) continue
    if (fields === null) found.delete(id)
    else found.set(id, { id, ...fields })
  }
  return found
}

/** The world's steps as the rows of a history. */
export function historyRows(steps: readonly Step[]): Record<string, unknown>[] {
  const last = new Map<string, Step['fields']>()
  return steps.map(({ id, poll, fields }) => {
    const before = last.get(id) ?? {}
    last.set(id, fields)
    const own = { id, at: at(poll), inferred: false, source: 'test', record: JSON.stringify({ id }) }
    return fields === null
      ? { ...before, ...own, op: null, closed_by: 'deleted' }
      : { ...own, ...fields, op: poll === 0 ? 'snapshot' : 'created' }
  })
}
