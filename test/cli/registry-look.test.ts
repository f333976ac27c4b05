import { expect, test } from 'vitest'
import type { Ended } from '../helpers/command.ts'
import { withRegistryDesk } from '../helpers/registry-desk.ts'
import { everyByte, standing } from '../helpers/registry-rig.ts'
import { refused, type SmallRegistry } from '../helpers/small-registry.ts'

type Run = (...argv: string[]) => Promise<Ended>

/** A lake that follows a small provider, and the command line beside both. */
const withDesk = async (work: (small: SmallRegistry, run: Run, root: string) => Promise<void>): Promise<void> =>
  await withRegistryDesk(async ({ small, run, root }) => {
    await run(['registry', 'sync'])
    await work(small, async (...argv) => await run(argv), root)
  })

const marks = (out: string): string[] => out.split('\n').filter((line) => /^[*+-] /.test(line))

test('registry diff of an ID: both sides in 80 columns, what differs is marked, nothing is stored', async () =>
  withDesk(async (small, run, root) => {
    const before = [await standing(root), everyByte(root).length]
    const same = await run('registry', 'diff', 'issuers', 'i3')
    expect([same.code, marks(same.out)]).toEqual([0, []])
    expect(same.out).toMatch(/^\/issuers\/i3: the same on both sides\n {2}member +held +provider now\n/)
    const name = `Another ${'long '.repeat(30)}name`
    small.world.put('issuers', 'i3', { name, custodian: 'Somebody' })
    const other = await run('registry', 'diff', 'issuers', 'i3')
    expect(other.code).toBe(0)
    expect(marks(other.out).map((line) => line.split(/ +/)[1])).toEqual(['name', 'custodian'])
    expect(Math.max(...other.out.split('\n').map((line) => [...line].length))).toBeLessThanOrEqual(80)
    const { out } = await run('registry', 'diff', 'issuers', 'i3', '--json')
    expect(JSON.parse(out)).toEqual({
      resource: 'issuers',
      address: '/issuers/i3',
      id: 'i3',
      mark: 'differs',
      differences: ['name', 'custodian'],
      held: { id: 'i3', name: 'Issuer 3', custodian: null },
      offered: { id: 'i3', name, custodian: 'Somebody' },
    })
    expect([await standing(root), everyByte(root).length]).toEqual(before)
  }))

test('registry diff of an ID covers one-sided records, resources without addresses and unknown ids', async () =>
  withDesk(async (small, run) => {
    small.world.put('issuers', 'i4', null)
    const gone = await run('registry', 'diff', 'issuers', 'i4')
    expect([gone.code, gone.out.split('\n')[0]]).toEqual([0, '/issuers/i4: only in the lake'])
    small.world.put('issuers', 'new', { name: 'New' })
    const fresh = await run('registry', 'diff', 'issuers', 'new')
    expect([fresh.code, fresh.out.split('\n')[0]]).toEqual([0, '/issuers/new: only upstream'])
    const record = { id: 'd-perp', symbol: 'X' }
    small.broken.set('/derivatives', () => Response.json({ data: [record], next_cursor: null, has_more: false }))
    const derivative = await run('registry', 'diff', 'derivatives', 'd-perp', '--json')
    expect(JSON.parse(derivative.out)).toMatchObject({ mark: 'only_upstream', offered: record, held: null })
    const nobody = await run('registry', 'diff', 'issuers', 'i33')
    expect([nobody.code, nobody.message]).toEqual([
      2,
      expect.stringMatching(/id of issuers, got i33, .*did you mean `i\d+`/),
    ])
  }))

test('registry diff compares a filtered list with the matching records of the lake', async () =>
  withDesk(async (small, run) => {
    const whole = await run('registry', 'diff', 'issuers', '--json')
    expect(JSON.parse(whole.out)).toMatchObject({ address: '/issuers', counts: { same: 30, differs: 0 } })
    small.world.put('products', 'p3', { name: 'Other', issuer_id: 'i3' })
    small.world.put('products', 'px', { name: 'New', issuer_id: 'i3' })
    const own = await run('registry', 'diff', 'products', '--filter', 'issuer=i3')
    expect(own.code).toBe(0)
    expect(own.out.split('\n')[0]).toBe('/products?issuer=i3: 2 records, 1 differs, 1 only upstream')
    expect(marks(own.out)).toEqual(['* p3  differs in name', '+ px  only upstream'])
    small.world.put('products', 'p3', { name: 'Product 3', issuer_id: 'i4' })
    const moved = await run('registry', 'diff', 'products', '--filter', 'issuer=i3', '--json')
    const { records } = JSON.parse(moved.out) as { records: { id: string; mark: string }[] }
    expect(records.map(({ id, mark }) => `${id} ${mark}`)).toEqual(['p3 only_held', 'px only_upstream'])
  }))

test('a mistake is one line that names the nearest; what the provider refuses is said', async () =>
  withDesk(async (small, run) => {
    const ends = async (code: number, words: RegExp, ...argv: string[]): Promise<void> => {
      const ended = await run('registry', ...argv)
      expect([ended.code, ended.message.trim().split('\n').length]).toEqual([code, 1])
      expect(ended.message).toMatch(words)
    }
    await ends(2, /expected issuers, assets, .*, got prodcts; did you mean `products`\?/, 'diff', 'prodcts', 'p1')
    await ends(
      2,
      /a filter of products: issuer, .*, got isuer; did you mean `issuer`\?/,
      'diff',
      'products',
      '--filter',
      'isuer=i1',
    )
    await ends(2, /expected KEY=VALUE, got issuer/, 'diff', 'products', '--filter', 'issuer')
    await ends(2, /each filter once/, 'diff', 'products', '--filter', 'issuer=a', '--filter', 'issuer=b')
    small.broken.set('/products', refused(400, 'invalid_parameter'))
    await ends(2, /values that the provider takes/, 'diff', 'products', '--filter', 'status=odd')
    small.broken.set('/products', refused(401, 'unauthorized'))
    await ends(3, /refuses the key/, 'diff', 'products')
  }))
