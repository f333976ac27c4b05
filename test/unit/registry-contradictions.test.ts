import { expect, test } from 'vitest'
import { exitCode } from '../../src/base/errors.ts'
import type { StoredEntity } from '../../src/sources/registry/history.ts'
import { stateOf } from '../../src/sources/registry/verify-plan.ts'
import { registryVerdict, type RegistryVerified } from '../../src/sources/registry/verify.ts'
import { type RegistryRig, withRegistryRig } from '../helpers/registry-rig.ts'
import { refused, SmallRegistry } from '../helpers/small-registry.ts'

const now = Date.UTC(2026, 5, 3, 12) / 1000

/** What a provider says of an address, path and query, instead of what is true; undefined: the truth. */
type Lie = (address: string, truth: () => Promise<readonly Record<string, unknown>[]>) => unknown

const listOf = (data: unknown): Response => Response.json({ data, next_cursor: null, has_more: false })

/** A registry that was followed in good faith and contradicts itself from then on. */
async function contradicting(
  resource: string,
  lie: Lie,
  judge: (done: RegistryVerified, code: number, rig: RegistryRig) => Promise<void> | void,
): Promise<void> {
  const small = new SmallRegistry({ derivatives: 'derivative' })
  small.world.put('issuers', 'acme', { name: 'A', custodian: 'Acme', status: 'active' })
  for (const id of ['x1', 'x2']) small.world.put('derivatives', id, { symbol: id.toUpperCase() })
  let lies = false
  const instead = async (request: Request): Promise<Response> => {
    const url = new URL(request.url)
    url.searchParams.delete('limit')
    const address = `${url.pathname.replace('/registry/v1/', '')}${decodeURIComponent(url.search)}`
    const truth = async (): Promise<readonly Record<string, unknown>[]> =>
      ((await small.answer(new Request(request.url)).json()) as { data: Record<string, unknown>[] }).data
    const told = lies ? await lie(address, truth) : undefined
    if (told instanceof Response) return told
    return told === undefined ? small.answer(request) : listOf(told)
  }
  await withRegistryRig(
    now,
    async (rig) => {
      await rig.sync()
      rig.clock.now += 60
      lies = true
      const done = await rig.verify({ budget: null, names: [resource] })
      const error = registryVerdict(done)
      await judge(done, error === null ? 0 : exitCode(error), rig)
    },
    { instead },
  )
}

const told = ({ findings }: RegistryVerified): string[] => [
  ...new Set(findings.map(({ kind, id, detail }) => `${kind} ${id}: ${detail}`)),
]

test('an address that returns a different record is a failure of the address, not a change of the record', async () =>
  await contradicting(
    'issuers',
    (address) => (address === 'issuers/i3' ? Response.json({ data: { id: 'i4', name: 'Issuer 4' } }) : undefined),
    (done, code) => {
      expect([code, told(done)]).toEqual([6, []])
      expect(done.failures).toEqual([{ address: '/issuers/i3', reason: '/issuers/i3: a record with the id i4' }])
    },
  ))

test('an unreadable answer is reported, and all others are compared', async () =>
  await contradicting(
    'issuers',
    (address) => (address === 'issuers/i3' ? new Response('<html>', { status: 200 }) : undefined),
    (done, code) => {
      expect([code, told(done), done.failures.map(({ address }) => address)]).toEqual([6, [], ['/issuers/i3']])
      expect(done.checks).toMatchObject({ left: 0, failed: 1, verified: done.checks.chosen - 1 })
    },
  ))

test('a list that shows an unknown record without an address is a finding', async () =>
  await contradicting(
    'issuers',
    async (address, truth) => (address === 'issuers' ? [...(await truth()), { id: 'z', name: 'Z' }] : undefined),
    (done, code) => {
      expect([code, told(done)]).toEqual([4, ['address_disagrees z: /issuers/z has it not, /issuers lists it']])
      expect(done.findings[0]).toMatchObject({ held: null, offered: expect.stringContaining('"Z"') })
    },
  ))

test('a list by a filter that shows a record without a value there', async () =>
  await contradicting(
    'issuers',
    (address) => {
      const acme = { id: 'acme', name: 'A', custodian: 'Acme', status: 'active' }
      return address === 'issuers?custodian=Acme' ? [acme, { id: 'i5', name: 'Issuer 5', custodian: null }] : undefined
    },
    (done, code) =>
      expect([code, told(done)]).toEqual([
        4,
        ['list_disagrees i5: shown in /issuers?custodian=Acme, where it does not belong'],
      ]),
  ))

test('a key newer than the stored text is no contradiction', async () =>
  await contradicting(
    'issuers',
    async (address, truth) => {
      const more = { id: 'i6', name: 'Issuer 6', custodian: null, website: 'https://example.com' }
      if (address === 'issuers/i6') return Response.json({ data: more })
      return address === 'issuers' ? (await truth()).map((row) => (row['id'] === 'i6' ? more : row)) : undefined
    },
    (done, code) => expect([code, told(done)]).toEqual([0, []]),
  ))

test('a record without an address is no finding if only a filtered list lacks it', async () => {
  let asked = 0
  await contradicting(
    'derivatives',
    (address) => {
      // The whole list is answered in good faith once: as a check of its own.
      if (address === 'derivatives' && asked++ > 0) return refused(400, 'invalid_parameter')()
      return address === 'derivatives?symbol=X1' ? [] : undefined
    },
    (done, code) => expect([code, told(done)]).toEqual([4, ['lost_event x1: held here, gone upstream']]),
  )
})

test('the state of a record changes with its text and with its end', () => {
  const entity: StoredEntity = { id: 'i', hash: 'h', at: 1, open: true, product: null, verified: false }
  const states = [entity, { ...entity, hash: 'g' }, { ...entity, open: false }, undefined].map(stateOf)
  expect(states).toEqual(['h', 'g', 'gone', 'gone'])
})
