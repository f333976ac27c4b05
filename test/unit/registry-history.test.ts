import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import type { RegistryChange } from '../../src/sources/registry/bodies.ts'
import { newPoll, observeEvent, observeState, type Poll } from '../../src/sources/registry/history.ts'
import { Memory, type Outcome, outcomeOf, SmallWorld } from '../helpers/registry-world.ts'

const replay = readFileSync(new URL('../helpers/registry-replay.sql', import.meta.url), 'utf8')
let engine: Engine
beforeAll(async () => (engine = await Engine.open(':memory:', { threads: 1 })))
afterAll(() => engine.close())

type Act =
  | {
      readonly kind: 'put'
      readonly table: 'issuers' | 'products' | 'deployments'
      readonly n: number
      readonly v: number | null
    }
  | { readonly kind: 'poll'; readonly how: 'feed' | 'again' | 'part' | 'snapshot' | 'epoch' }

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('put' as const),
      table: fc.constantFrom('issuers' as const, 'products' as const, 'deployments' as const),
      n: fc.nat(5),
      v: fc.option(fc.nat(2), { freq: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('poll' as const),
      how: fc.constantFrom(
        'feed' as const,
        'feed' as const,
        'again' as const,
        'part' as const,
        'snapshot' as const,
        'epoch' as const,
      ),
    }),
  },
)

interface Seen {
  readonly poll: number
  readonly pos: number
  readonly kind: 'event' | 'state'
  readonly resource: string
  readonly id: string
  readonly hash: string | null
  readonly product: string | null
}

/** Runs the acts; gives the folded history, and what was seen. */
function run(acts: readonly Act[]) {
  const world = new SmallWorld()
  const memory = new Memory()
  const seen: Seen[] = []
  const states: { poll: number; pos: number; resource: string }[] = []
  let cursor = 0
  let pollNumber = 0
  const take = (poll: Poll, event: RegistryChange, pos: number) => {
    const { resource, id, incoming } = event
    observeEvent(poll, event)
    if (resource === null) throw new Error('unknown type')
    const hash = incoming?.hash ?? null
    seen.push({ poll: pollNumber, pos, kind: 'event', resource, id, hash, product: incoming?.product ?? null })
  }
  for (const step of acts) {
    if (step.kind === 'put') {
      const id = `${step.table[0]}${step.n}`
      const product_id = `p${step.n % 3}`
      if (step.table === 'deployments' && step.v !== null && !world.rows.has(`products ${product_id}`)) continue
      world.put(
        step.table,
        id,
        step.v === null ? null : { v: step.v, ...(step.table === 'deployments' && { product_id }) },
      )
      continue
    }
    pollNumber++
    const poll = newPoll(memory.state())
    if (step.how === 'snapshot' || step.how === 'epoch') {
      const records = world.snapshot()
      observeState(poll, { records, source: 'snapshot', first: pollNumber === 1, inferred: step.how === 'epoch' })
      for (const [resource, list] of records) {
        states.push({ poll: pollNumber, pos: 0, resource })
        for (const { id, hash, product } of list.values())
          seen.push({ poll: pollNumber, pos: 0, kind: 'state', resource, id, hash, product })
      }
      if (step.how === 'epoch') cursor = world.log.length
    } else {
      const from = step.how === 'again' ? Math.max(0, cursor - 4) : cursor
      const until = step.how === 'part' ? cursor + Math.ceil((world.log.length - cursor) / 2) : world.log.length
      for (const [pos, event] of world.events(from, until).entries()) take(poll, event, pos)
      if (step.how === 'again') for (const event of world.events(from, until).slice(-1)) take(poll, event, 1000)
      cursor = until
    }
    memory.apply(outcomeOf(poll, memory), pollNumber)
    // The same poll upon its own result gives nothing.
    const repeated = newPoll(memory.state())
    if (step.how === 'snapshot')
      observeState(repeated, { records: world.snapshot(), source: 'snapshot', first: false, inferred: false })
    const nothing = outcomeOf(repeated, memory)
    expect([nothing.steps, nothing.absorbed, nothing.newKeys]).toEqual([[], [], []])
  }
  return { memory, seen, states }
}

/** The versions that what was seen amounts to, read anew in SQL. */
async function replayed(seen: readonly Seen[], states: readonly object[]): Promise<string[]> {
  const types = `[{"poll": "INTEGER", "pos": "INTEGER", "kind": "VARCHAR", "resource": "VARCHAR", "id": "VARCHAR", "hash": "VARCHAR", "product": "VARCHAR"}]`
  const table = (rows: readonly object[]) =>
    `SELECT unnest(from_json(${quote(JSON.stringify(rows))}, '${types}'), recursive := true)`
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE seen AS ${table(seen)}; CREATE OR REPLACE TEMP TABLE states AS ${table(states)}`,
  )
  const rows = await engine.rows(replay)
  return rows
    .map(({ resource, id, valid_from, valid_to, hash }) =>
      [resource, id, valid_from, valid_to, hash].map(String).join(' '),
    )
    .toSorted()
}

describe('the fold', () => {
  test('agrees with the replay in SQL for any stream', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 40, size: 'max' }), async (acts) => {
        const { memory, seen, states } = run(acts)
        const own = memory.versions().filter((line) => /^(issuers|products|deployments) /.test(line))
        expect(await replayed(seen, states)).toEqual(own)
      }),
      { numRuns: 120 },
    )
  })

  test('TIME 43: every id has sorted, disjoint versions of some length', () => {
    let steps = 0
    fc.assert(
      fc.property(fc.array(act, { minLength: 10, maxLength: 60, size: 'max' }), (acts) => {
        const { memory } = run(acts)
        steps += memory.steps.length
        for (const list of Map.groupBy(memory.steps, ({ table, id }) => `${table} ${id}`).values()) {
          for (const [i, step] of list.entries()) {
            const next = list[i + 1]
            if (next) expect(next.at).toBeGreaterThan(step.at)
            // What is closed is not closed again.
            if (step.op === null && next) expect(next.op).not.toBeNull()
          }
        }
      }),
      { numRuns: 100 },
    )
    expect(steps).toBeGreaterThan(100)
  })
})

/** One poll of events upon a memory. */
function pollEvents(world: SmallWorld, memory: Memory, from: number, at: number): Outcome {
  const poll = newPoll(memory.state())
  for (const event of world.events(from, world.log.length)) observeEvent(poll, event)
  const settled = outcomeOf(poll, memory)
  memory.apply(settled, at)
  return settled
}

describe('cases', () => {
  test('TIME 40: a product that is removed closes its deployments at the same poll, each once', () => {
    const world = new SmallWorld()
    const memory = new Memory()
    world.put('products', 'p', { status: 'active' })
    for (const id of ['d1', 'd2', 'd3']) world.put('deployments', id, { product_id: 'p' })
    pollEvents(world, memory, 0, 1)
    const from = world.log.length
    world.put('products', 'p', null)
    const steps = pollEvents(world, memory, from, 2).steps
    expect(steps.map(({ id, closedBy }) => [id, closedBy])).toEqual([
      ['p', 'deleted'],
      ['d1', 'deleted'],
      ['d2', 'deleted'],
      ['d3', 'deleted'],
    ])
  })

  test('the events of its deployments may be missing: they go with it', () => {
    const world = new SmallWorld()
    const memory = new Memory()
    world.put('products', 'p', {})
    world.put('deployments', 'd', { product_id: 'p' })
    pollEvents(world, memory, 0, 1)
    const from = world.log.length
    world.put('products', 'p', null)
    const poll = newPoll(memory.state())
    for (const event of world.events(from, from + 1)) observeEvent(poll, event)
    const { steps } = outcomeOf(poll, memory)
    expect(steps.map(({ id, closedBy }) => [id, closedBy])).toEqual([
      ['p', 'deleted'],
      ['d', 'cascade'],
    ])
  })

  test('TIME 44: a change on two pages with the same state is one version', () => {
    const world = new SmallWorld()
    const memory = new Memory()
    world.put('issuers', 'i', { v: 1 })
    world.put('issuers', 'i', { v: 1 })
    const poll = newPoll(memory.state())
    for (const event of [...world.events(0, 1), ...world.events(1, 2)]) observeEvent(poll, event)
    const settled = outcomeOf(poll, memory)
    expect(settled.steps.map(({ id, op }) => [id, op])).toHaveLength(1)
    memory.apply(settled, 1)
    expect(pollEvents(world, memory, 0, 2).steps).toEqual([])
  })

  test('TIME 47: a removed id that comes back leaves a gap and is reported', () => {
    const world = new SmallWorld()
    const memory = new Memory()
    world.put('issuers', 'i', { v: 1 })
    pollEvents(world, memory, 0, 1)
    world.put('issuers', 'i', null)
    pollEvents(world, memory, 1, 2)
    world.put('issuers', 'i', { v: 1 })
    expect(pollEvents(world, memory, 2, 3).findings.map(({ kind, id }) => [kind, id])).toEqual([['returned', 'i']])
    expect(memory.versions().map((line) => line.split(' ').slice(2, 4))).toEqual([
      ['1', '2'],
      ['3', 'null'],
    ])
  })

  test('a record that comes and goes within one poll leaves no trace; one that goes and returns is reported', () => {
    const world = new SmallWorld()
    const memory = new Memory()
    /** One poll that is told of each change as it happens. */
    const told = (at: number, ...changes: readonly (readonly [id: string, v: number | null])[]): Outcome => {
      const poll = newPoll(memory.state())
      for (const [id, v] of changes) {
        const from = world.log.length
        world.put('issuers', id, v === null ? null : { v })
        for (const event of world.events(from, world.log.length)) observeEvent(poll, event)
      }
      const settled = outcomeOf(poll, memory)
      memory.apply(settled, at)
      return settled
    }
    const first = told(1, ['i', 1], ['i', null], ['j', 1])
    expect([first.steps.map(({ id, op }) => [id, op]), first.findings]).toEqual([[['j', 'created']], []])
    const second = told(2, ['j', null], ['j', 2], ['j', 3], ['k', 1], ['k', null], ['k', 1])
    expect(second.steps.map(({ id, op, text }) => [id, op, text])).toEqual([
      ['j', 'updated', '{"id":"j","v":3}'],
      ['k', 'created', '{"id":"k","v":1}'],
    ])
    expect(second.findings.map(({ kind, id }) => [kind, id])).toEqual([['returned', 'j']])
  })

  test('TIME 50: the order of keys and additive keys make no version; a change of such a key does', () => {
    const world = new SmallWorld()
    const memory = new Memory()
    world.put('issuers', 'a', { v: 1, w: { x: 1, y: 2 } })
    world.put('issuers', 'b', { v: 2, w: { x: 1, y: 2 } })
    pollEvents(world, memory, 0, 1)
    world.put('issuers', 'a', { w: { y: 2, x: 1 }, v: 1 })
    const turned = pollEvents(world, memory, 2, 2)
    expect([turned.steps, turned.absorbed, turned.newKeys]).toEqual([[], [], []])
    world.put('issuers', 'a', { v: 1, w: { x: 1, y: 2 }, lei: 'A' })
    world.put('issuers', 'b', { v: 2, w: { x: 1, y: 2 }, lei: null })
    const added = pollEvents(world, memory, 3, 3)
    expect([added.steps, added.absorbed.length, added.newKeys.map(({ path }) => path)]).toEqual([[], 2, ['lei']])
    const again = pollEvents(world, memory, 3, 4)
    expect([again.steps, again.absorbed]).toEqual([[], []])
    world.put('issuers', 'b', { v: 2, w: { x: 1, y: 2 }, lei: 'B' })
    expect(pollEvents(world, memory, 5, 5).steps.map(({ id, op }) => [id, op])).toEqual([['b', 'updated']])
  })

  test('TIME 46: what vanished while the feed was blind is closed at the new observation, inferred', () => {
    const world = new SmallWorld()
    const memory = new Memory()
    world.put('issuers', 'a', {})
    world.put('issuers', 'b', {})
    pollEvents(world, memory, 0, 1)
    world.put('issuers', 'b', null)
    const poll = newPoll(memory.state())
    observeState(poll, { records: world.snapshot(), source: 'snapshot', first: false, inferred: true })
    const { steps } = outcomeOf(poll, memory)
    expect(steps.map(({ id, closedBy, inferred }) => [id, closedBy, inferred])).toEqual([['b', 'snapshot', true]])
  })

  test('documents follow their parent: by place and content', () => {
    const world = new SmallWorld()
    const memory = new Memory()
    world.put('issuers', 'i', { documents: [{ title: 'A' }, { title: 'B' }] })
    pollEvents(world, memory, 0, 1)
    world.put('issuers', 'i', { documents: [{ title: 'A' }, { title: 'C' }] })
    const changed = pollEvents(world, memory, 1, 2).steps.filter(({ table }) => table === 'documents')
    expect(changed.map(({ op, closedBy, child }) => [op, closedBy, child?.ordinal])).toEqual([
      [null, 'updated', 1],
      ['created', null, 1],
    ])
    world.put('issuers', 'i', null)
    const closed = pollEvents(world, memory, 2, 3).steps.map(({ table, closedBy }) => [table, closedBy])
    expect(closed).toEqual([
      ['issuers', 'deleted'],
      ['documents', 'deleted'],
      ['documents', 'deleted'],
    ])
  })
})
