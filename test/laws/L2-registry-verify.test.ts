// @module-tag full
// @module-tag slow
import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { registryVerdict, type RegistryVerified } from '../../src/sources/registry/verify.ts'
import { exitOf } from '../helpers/looking.ts'
import { contentOf, type RegistryRig, standing, withRegistryRig } from '../helpers/registry-rig.ts'
import { scratch } from '../helpers/scratch.ts'
import { SmallRegistry } from '../helpers/small-registry.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { registryStateAt } from '../helpers/registry-truth.ts'
import type { Row } from '../../src/lake/store/engine.ts'

const wednesday = Date.UTC(2026, 5, 3, 12) / 1000
const day = 86_400
const all = { budget: null, names: ['issuers', 'venues', 'derivatives'] }

const code = (done: RegistryVerified): number => exitOf(registryVerdict(done))

interface FindingRow extends Row {
  readonly kind: string
  readonly resource: string
  readonly id: string
  readonly held: string | null
  readonly offered: string | null
}

/** The findings as a reader sees them. */
async function rows(root: string, settings: readonly string[] = []): Promise<FindingRow[]> {
  await makeViews(root)
  return await withViews(root, async (engine) => {
    for (const set of settings) await engine.run(set)
    return await engine.rows<FindingRow>('SELECT kind, resource, id, held, offered FROM registry_findings ORDER BY ALL')
  })
}

/** Some record of a resource that fits, as the provider has it at an instant. */
function someOf(table: string, at: number, fits: (record: Record<string, unknown>) => boolean): string {
  const found = [...(registryStateAt({ seed: 5, scale: 'demo' }, at).get(table)?.values() ?? [])].find(fits)
  if (!found) throw new Error(`no such record in ${table}`)
  return String(found['id'])
}

/** A record that has no event on the two days after an instant, nor anything that it embeds. */
function quiet(table: string, fits: (record: Record<string, unknown>) => boolean): string {
  const world = { seed: 5, scale: 'demo' as const }
  const later = registryStateAt(world, wednesday + 2 * day).get(table)
  return someOf(table, wednesday, (record) => {
    const then = later?.get(String(record['id']))
    return then !== undefined && JSON.stringify(then) === JSON.stringify(record) && fits(record)
  })
}

const isActive = ({ status }: Record<string, unknown>): boolean => status === 'active'

const kept = scratch('registry-verify')

/** A lake that followed the registry once: the first that asks makes it, the others have a copy. */
async function withHeld(work: (rig: RegistryRig) => Promise<void>): Promise<void> {
  await withRegistryRig(wednesday, async (rig) => {
    const isMade = existsSync(join(kept, 'journal'))
    if (!isMade) await rig.sync()
    cpSync(isMade ? kept : rig.root, isMade ? rig.root : kept, { recursive: true })
    rig.clock.now += 60
    await work(rig)
  })
}

test('L2/L4: where the provider says what is held, nothing is found, stored or changed', async () =>
  withHeld(async (rig) => {
    const before = [await standing(rig.root), await contentOf(rig.root)]
    const done = await rig.verify(all)
    expect([code(done), done.findings, done.failures]).toEqual([0, [], []])
    expect(done.checks).toMatchObject({ failed: 0, left: 0, verified: done.checks.chosen })
    expect(done.checks.chosen).toBe(done.checks.held)
    expect(done.results).toMatchObject({ identical: done.checks.chosen, pending: 0 })
    expect(done.requests).toBeGreaterThanOrEqual(done.checks.chosen)
    expect([await standing(rig.root), await contentOf(rig.root)]).toEqual(before)
  }))

test('L2: every lie is one row with both records, exit 4, found again and not stored again', async () =>
  withHeld(async (rig) => {
    const derivative = quiet('derivatives', () => true)
    const issuer = quiet('issuers', isActive)
    const venue = quiet('venues', () => true)
    const left = quiet('issuers', (record) => isActive(record) && record['id'] !== issuer)
    rig.faults(
      `silent-change:record=derivatives/${derivative},field=symbol`,
      `silent-change:record=issuers/${issuer},field=status,value=inactive`,
      `gone-404@registry/venues/${venue}:code=not_found`,
      `filter-omits:record=issuers/${left}`,
    )
    const before = await contentOf(rig.root)
    const done = await rig.verify(all)
    expect(code(done)).toBe(4)
    const found = done.findings.map(({ kind, resource, id }) => `${kind} ${resource} ${id}`).toSorted()
    expect(new Set(found)).toEqual(
      new Set([
        `silent_change derivatives ${derivative}`,
        `lost_event issuers ${issuer}`,
        `address_disagrees venues ${venue}`,
        `list_disagrees issuers ${left}`,
      ]),
    )
    expect(await contentOf(rig.root)).toEqual(before)
    const stored = await rows(rig.root)
    expect(new Set(stored.map(({ kind, resource, id }) => `${kind} ${resource} ${id}`))).toEqual(new Set(found))
    const silent = stored.find(({ kind }) => kind === 'silent_change')
    const [held, offered] = [silent?.held, silent?.offered].map(
      (text) => JSON.parse(text ?? '{}') as { symbol?: string },
    )
    expect(offered?.symbol).toBe(`${held?.symbol} (restated)`)
    expect(stored.every(({ held: own }) => own !== null)).toBe(true)

    const version = (await standing(rig.root)).version
    rig.clock.now += 60
    const twice = await rig.verify(all)
    expect([code(twice), twice.findings.length]).toEqual([4, done.findings.length])
    expect((await standing(rig.root)).version).toBe(version)
    expect(await rows(rig.root)).toEqual(stored)
  }))

test('L2: a lost event and a wrong retirement come out though the feed was followed; the next snapshot settles them', async () =>
  withHeld(async (rig) => {
    const world = { seed: 5, scale: 'demo' as const }
    const until = wednesday + 28 * day
    const before = registryStateAt(world, wednesday).get('products')
    const then = registryStateAt(world, until).get('products')
    const changed = [...(before?.values() ?? [])].flatMap((one) => {
      const later = then?.get(String(one['id']))
      return isActive(one) && later && JSON.stringify(one) !== JSON.stringify(later) ? [later] : []
    })
    const [lost, retired] = ['inactive', 'active'].map((status) =>
      String(changed.find((one) => one['status'] === status)?.['id']),
    )
    rig.faults(`lost-event:record=products/${lost}`, `wrong-retirement:record=products/${retired}`)
    rig.clock.now = until
    await rig.sync()
    const done = await rig.verify({ budget: null, names: ['products'] })
    expect(code(done)).toBe(4)
    const kinds = new Set(done.findings.map(({ id, kind }) => `${kind} ${id}`))
    expect(kinds).toEqual(new Set([`lost_event ${lost}`, `wrong_retirement ${retired}`]))
    const stored = await rows(rig.root)
    const statuses = stored.map((row) =>
      [row.id, row.held, row.offered].map((text, i) =>
        i === 0 ? text : (JSON.parse(text ?? '{}') as { status?: string }).status,
      ),
    )
    expect(statuses).toEqual(
      expect.arrayContaining([
        [lost, 'active', 'inactive'],
        [retired, 'inactive', 'active'],
      ]),
    )
    rig.faults()
    await rig.snapshot()
    expect(await rows(rig.root)).toEqual(stored)
    const held = await withViews(rig.root, async (engine) =>
      engine.rows(`SELECT status FROM products WHERE id IN ('${lost}', '${retired}') ORDER BY id = '${lost}' DESC`),
    )
    expect(held).toEqual([{ status: 'inactive' }, { status: 'active' }])
  }))

test('a record that changed honestly since the last sync is no finding; after the sync it is as held', async () =>
  withHeld(async (rig) => {
    const issuers = { budget: null, names: ['issuers'] }
    rig.clock.now += 60 * day
    const done = await rig.verify(issuers)
    expect([code(done), done.findings]).toEqual([0, []])
    expect(done.results.pending).toBeGreaterThan(5)
    expect(await rows(rig.root)).toEqual([])
    await rig.sync()
    rig.clock.now += 60
    const after = await rig.verify(issuers)
    expect([code(after), after.findings, after.results.pending]).toEqual([0, [], 0])
  }))

test('a sample is fair over resources, goes on where the last one ended, and asks with entity tags', async () =>
  withHeld(async (rig) => {
    rig.asked()
    const kinds = new Set<string>()
    const addresses: string[] = []
    for (let n = 0; n < 3; n++) {
      rig.clock.now += 60
      const done = await rig.verify({ budget: 22 })
      expect([code(done), done.requests]).toEqual([0, done.checks.chosen])
      expect(done.requests).toBeLessThanOrEqual(22)
      const asked = rig.sandbox.requests().slice(-done.requests)
      for (const { path, query } of asked) {
        kinds.add(path.split('/')[3] ?? '')
        addresses.push(`${path} ${JSON.stringify(query)}`)
      }
    }
    expect(kinds).toEqual(new Set(['issuers', 'assets', 'products', 'deployments', 'venues', 'derivatives']))
    // Of the few venues there are few lists, which come round again.
    const records = addresses.filter((one) => one.split('/').length > 4)
    expect(new Set(records).size).toBe(records.length)
    expect(records.length).toBeGreaterThan(25)

    const venues = { budget: null, names: ['venues'] }
    await rig.verify(venues)
    rig.clock.now += 60
    rig.asked()
    const again = await rig.verify(venues)
    expect(again.results.identical).toBe(again.checks.chosen)
    const statuses = rig.asked().map((line) => line.split(' ').at(-1))
    expect(new Set(statuses)).toEqual(new Set(['304']))
  }))

test('records that contradict the lake for good keep no other record waiting', async () =>
  withHeld(async (rig) => {
    rig.faults('gone-404@registry/issuers/*:code=not_found')
    const found: string[] = []
    for (let n = 0; n < 3; n++) {
      rig.clock.now += 60
      const done = await rig.verify({ budget: 8, names: ['issuers'] })
      found.push(...new Set(done.findings.map(({ id }) => id)))
    }
    expect(found.length).toBeGreaterThan(3)
    expect(new Set(found).size).toBe(found.length)
  }))

test('a registry verify that a limit stopped continues without repeating its requests', async () =>
  withHeld(async (rig) => {
    const scope = { budget: null, names: ['issuers'] }
    const first = await rig.verify(scope, { maxRequests: 30 })
    expect([code(first), first.stopped_by]).toEqual([5, 'max_requests'])
    expect(first.checks.left).toBe(first.checks.held - 30)
    rig.clock.now += 60
    const second = await rig.verify(scope)
    expect([code(second), second.requests]).toEqual([0, first.checks.left])
  }))

test('a new epoch of the feed during verify leaves no finding, since news cannot be told from contradictions', async () =>
  withHeld(async (rig) => {
    rig.faults('new-epoch', `silent-change:record=venues/${quiet('venues', () => true)}`)
    const done = await rig.verify({ budget: null, names: ['venues'] })
    expect([code(done), done.findings]).toEqual([6, []])
    expect(done.words).toContain('run pitlake registry sync first')
    expect(await rows(rig.root)).toEqual([])
  }))

test('L1: a finding is hidden before it was made', async () =>
  withHeld(async (rig) => {
    rig.faults(`silent-change:record=venues/${quiet('venues', () => true)}`)
    expect(code(await rig.verify(all))).toBe(4)
    const earlier = new Date((rig.clock.now - 30) * 1000).toISOString()
    expect(await rows(rig.root, [`SET VARIABLE as_of = '${earlier}'`])).toEqual([])
    expect(await rows(rig.root, [`SET VARIABLE observed_as_of = '${earlier}'`])).toEqual([])
    expect((await rows(rig.root)).length).toBeGreaterThan(0)
  }))

/** A real provider: what is seen to differ is asked again when its events had their time. */
async function withReal(work: (small: SmallRegistry, rig: RegistryRig) => Promise<void>): Promise<void> {
  const small = new SmallRegistry()
  const serve = async (rig: RegistryRig): Promise<void> => {
    await rig.sync()
    await work(small, rig)
  }
  await withRegistryRig(wednesday, serve, { instead: (request) => small.answer(request) })
}

test('an event that becomes visible minutes after its change is waited for, and is no finding', async () =>
  withReal(async (small, rig) => {
    // The change is there at once, its event only when the feed is read for the second time.
    small.world.put('issuers', 'i3', { name: 'Changed' })
    const event = small.world.log.pop() ?? ''
    let polls = 0
    small.broken.set('/changes', () => {
      if (++polls === 2) small.world.log.push(event)
      small.broken.delete('/changes')
      const answer = small.answer(new Request('http://x/registry/v1/changes?since=e0.90'))
      small.broken.set('/changes', again)
      return answer
    })
    const again = small.broken.get('/changes') as () => Response
    const done = await rig.verify({ budget: null, names: ['issuers'] })
    expect([code(done), done.findings]).toEqual([0, []])
    expect(done.results.pending).toBeGreaterThan(0)
    expect(polls).toBe(2)
  }))

test('a change that never gets its event is a finding after the wait', async () =>
  withReal(async (small, rig) => {
    small.world.put('issuers', 'i3', { name: 'Changed' })
    small.world.put('deployments', 'd2', null)
    small.world.log.splice(-3)
    const done = await rig.verify({ budget: null, names: ['issuers', 'deployments'] })
    expect(code(done)).toBe(4)
    const found = new Set(done.findings.map(({ kind, resource, id }) => `${kind} ${resource} ${id}`))
    expect(found).toEqual(new Set(['silent_change issuers i3', 'lost_event deployments d2']))
    // Of unverified ones nobody says that they have an address.
    small.world.put('deployments', 'd0', null)
    small.world.log.splice(-2)
    rig.clock.now += 600
    const again = await rig.verify({ budget: null, names: ['deployments'] })
    expect(again.findings.map(({ id }) => id)).toEqual(['d2'])
    expect(again.results.undecided).toBe(1)
  }))

test('list filters that the provider ignores are reported once, cost a request each and are no findings', async () =>
  withReal(async (small, rig) => {
    const usual = await rig.verify({ budget: 40, names: null })
    expect(code(usual)).toBe(0)
    expect(usual).toMatchObject({ ignored: [], findings: [] })
    small.heedless = true
    rig.clock.now += 600
    const done = await rig.verify({ budget: null, names: null })
    expect(code(done)).toBe(0)
    expect(done.findings).toEqual([])
    expect(done.ignored).toContain('deployments?product')
    expect(new Set(done.ignored).size).toBe(done.ignored.length)
    rig.clock.now += 600
    small.world.put('issuers', 'i3', { name: 'Changed' })
    small.world.log.pop()
    const few = await rig.verify({ budget: 30, names: null })
    // With what the feed says of what differs.
    expect(few.requests).toBeLessThanOrEqual(33)
  }))
