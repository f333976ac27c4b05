import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readPage, readSnapshot } from '../../src/sources/registry/bodies.ts'
import { cutApart, cutBody } from '../../src/sources/registry/body-records.ts'
import { isFields, sortedText, type Value } from '../../src/sources/registry/json.ts'
import { withMissing } from '../../src/sources/registry/history.ts'
import { isSame, learnKeys, noKeys } from '../../src/sources/registry/keys.ts'
import { readRecord, typedFields } from '../../src/sources/registry/record.ts'
import { resources } from '../helpers/registry-world.ts'

const json: fc.Arbitrary<Value> = fc.jsonValue({ maxDepth: 5 }) as fc.Arbitrary<Value>
const record = fc.dictionary(fc.string(), json, { maxKeys: 5 })
const array = fc.array(fc.oneof({ weight: 5, arbitrary: record }, { weight: 1, arbitrary: json }), { maxLength: 6 })
const body = fc.dictionary(
  fc.constantFrom('products', 'data', 'x', 'a"b', 'é'),
  fc.oneof(json, array, fc.dictionary(fc.string(), array, { maxKeys: 3 })),
)

/** What a cut body says as a whole. */
function restored(text: string): unknown {
  const { frame, elements, finish } = cutBody(Buffer.from(text))
  finish()
  const again = (value: Value): Value => {
    if (Array.isArray(value))
      return [...elements(value as readonly Value[])].map((one, i) => (isStandIn(value[i]) ? one : again(one)))
    if (!isFields(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, again(held)]))
  }
  return again(frame as Value)
}

const isStandIn = (value: unknown): boolean => isFields(value) && Object.hasOwn(value, '\u0000')

const outcome = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (error) {
    if (error instanceof SyntaxError) return 'no JSON'
    throw error
  }
}

describe('a body that is cut into records', () => {
  test('says what the whole says, however it is spaced', () => {
    fc.assert(
      fc.property(body, fc.nat(3), (value, space) => {
        const text = JSON.stringify(value, null, space)
        expect(restored(text)).toEqual(JSON.parse(text))
      }),
      { numRuns: 500 },
    )
  })

  test('is JSON exactly where the whole is', () => {
    let damaged = 0
    fc.assert(
      fc.property(
        body,
        fc.nat(),
        fc.constantFrom('', '"', '\\', '{', '}', '[', ']', ',', ':', '1', ' '),
        (value, at, put) => {
          const text = JSON.stringify({ ...value, products: [{ id: 'a', list: [1, { b: '}]"' }] }, { id: 'c' }] })
          const place = at % text.length
          const changed = text.slice(0, place) + put + text.slice(place + 1)
          const whole = outcome(() => JSON.parse(changed) as unknown)
          if (whole === 'no JSON') damaged++
          expect(outcome(() => restored(changed))).toEqual(whole)
        },
      ),
      { numRuns: 3000 },
    )
    expect(damaged).toBeGreaterThan(500)
  })

  test('a byte order mark is no part of it', () => {
    const text = '{"issuers":[{"id":"é"}],"cursor":"c"}'
    for (const bytes of [Buffer.from(text), Buffer.from(`\ufeff${text}`)]) {
      const read = readSnapshot(bytes, resources)
      expect(read.ok && read.value.records.get('issuers')?.get('é')?.text).toBe('{"id":"é"}')
    }
  })

  test('damage in an unused array is damage of the body', () => {
    const read = readSnapshot(Buffer.from('{"issuers":[{"id":"a"}],"cursor":"c","others":[{"x":tru}]}'), resources)
    expect(read).toEqual({ ok: false, reason: 'JSON that is cut or damaged' })
  })
})

test('two values are the same exactly where their sorted texts are', () => {
  const turned = (value: Value): Value => {
    if (Array.isArray(value)) return (value as readonly Value[]).map(turned)
    if (!isFields(value)) return value
    return Object.fromEntries(
      Object.entries(value)
        .map(([key, held]) => [key, turned(held)] as const)
        .toReversed(),
    )
  }
  const few = fc.jsonValue({ maxDepth: 2, stringUnit: fc.constantFrom('a', 'b') }) as fc.Arbitrary<Value>
  let same = 0
  fc.assert(
    fc.property(few, few, (a, b) => {
      if (isSame(a, b)) same++
      expect(isSame(a, b)).toBe(sortedText(a) === sortedText(b))
      expect(isSame(a, turned(a))).toBe(true)
    }),
    { numRuns: 2000 },
  )
  expect(same).toBeGreaterThan(10)
  expect([isSame(0, -0), isSame([-0], [-0]), isSame({ a: null }, {}), isSame({}, { a: null })]).toEqual([
    false,
    true,
    false,
    false,
  ])
})

test('numbers are read back as the same 64 bits, whatever texts are next to them', () => {
  const given = '{"id":"x","hash":"sha256:585e123","a":-0,"b":[1e400,-1e400,5e-324],"c":9007199254740993,"d":0.1}'
  const page = `{"data":[{"entity_type":"issuer","entity_id":"x","op":"updated","record":${given},"seq":-0.0}],"has_more":false}`
  const read = readPage(Buffer.from(page), resources)
  const [event] = read.ok ? read.value.events : []
  expect(event?.incoming?.text).toBe(
    '{"id":"x","hash":"sha256:585e123","a":-0.0,"b":[1e999,-1e999,5e-324],"c":9007199254740992,"d":0.1}',
  )
  expect(JSON.parse(event?.text ?? '')).toEqual((JSON.parse(page) as { data: unknown[] }).data[0])
})

test('an event that is nested too deep is refused, whatever its type', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  for (const event of [
    `{"entity_type":"committee","entity_id":"c","op":"updated","record":{"id":"c","v":${deep}}}`,
    `{"entity_type":"issuer","entity_id":"c","op":"updated","record":{"id":"c"},"v":${deep}}`,
  ]) {
    const read = readPage(Buffer.from(`{"data":[${event}],"has_more":false}`), resources)
    expect(read).toMatchObject({ ok: false, reason: expect.stringMatching(/nested deeper than 64/) })
  }
})

test('bodies that follow one another come apart where each ends, and what is cut at the end is left out', () => {
  const bodies = ['{"a":"}{"}', '{"b":[{"c":1}]}', '{}']
  const apart = (text: string): string[] => cutApart(Buffer.from(text)).map(String)
  expect(apart(bodies.join('\n'))).toEqual(bodies)
  expect(apart(`${bodies.join('')}{"d":"}"`)).toEqual(bodies)
  expect([apart(''), apart('null')]).toEqual([[], []])
})

const page = (event: object, rest: object = { has_more: false }): unknown => {
  const read = readPage(Buffer.from(JSON.stringify({ data: [event], ...rest })), resources)
  return read.ok ? read.value.events[0]?.id : read.reason
}
const event = { entity_type: 'issuer', entity_id: 'i', op: 'updated', record: { id: 'i' } }

test.each([
  [{}, 'i'],
  [{ entity_id: undefined }, 'i'],
  [{ entity_id: undefined, record: {} }, 'issuer: an event without entity_id'],
  [{ entity_id: null, record: { id: null } }, 'issuer: an event without entity_id'],
  [{ entity_id: '' }, 'issuer: an event without entity_id'],
  [{ entity_id: 7, record: { id: 7 } }, 'issuer: an id that is a number, not a text'],
  [{ op: null }, 'issuer i: an event without op'],
  [{ record: null }, 'issuer i: updated without a record'],
  [{ record: { id: 'j' } }, 'issuer i: a record with the id j'],
])('an event with %j is %j', (change, said) => expect(page({ ...event, ...change })).toBe(said))

test('a page says whether more follows, and then from where', () => {
  expect(page(event, { has_more: true, next_cursor: 'c' })).toBe('i')
  expect(page(event, { has_more: true })).toBe('has_more without a next_cursor')
  expect(page(event, {})).toBe('a page of the feed without has_more')
})

test('a whole state may be nested in its body, and events next to other records', () => {
  for (const within of ['data', 'snapshot', null]) {
    const whole = { issuers: [{ id: 'i' }] }
    const body = { cursor: 'c', ...(within === null ? whole : { [within]: whole }) }
    const read = readSnapshot(Buffer.from(JSON.stringify(body)), resources)
    expect(read.ok && [...(read.value.records.get('issuers')?.keys() ?? [])]).toEqual(['i'])
  }
  expect(page(event, { has_more: false, notes: [{ text: 'no event' }] })).toBe('i')
  const text = JSON.stringify({ notes: [{ text: 'no event' }], data: [event], has_more: false })
  const read = readPage(Buffer.from(text), resources)
  expect(read.ok && read.value.events.map(({ id }) => id)).toEqual(['i'])
})

test('a deployment in two places may say less in one, but nothing else', () => {
  const disagreeing = (own: object, embedded: object): unknown => {
    const deployments = [{ id: 'd', product_id: 'p', ...own }]
    const products = [{ id: 'p', deployments: [{ id: 'd', ...embedded }] }]
    const read = readSnapshot(Buffer.from(JSON.stringify({ products, deployments, cursor: 'c' })), resources)
    return read.ok && read.value.disagreeing
  }
  expect(disagreeing({ chain: 'x', at: { a: 1, b: 2 } }, { chain: 'x' })).toEqual([])
  expect(disagreeing({ chain: 'x', at: { a: 1, b: 2 } }, { at: { b: 2, a: 1 }, more: 1 })).toEqual([])
  expect(disagreeing({ chain: 'x' }, { chain: 'y' })).toEqual(['d'])
  expect(disagreeing({ chain: null }, { chain: 'y' })).toEqual(['d'])
})

test('keys are learnt with the keys below them, each once', () => {
  const known: ReturnType<typeof noKeys> = noKeys()
  const told: string[] = []
  const learn = (value: Value): void => learnKeys(known, value, 1, (path) => told.push(path))
  learn({ a: { 'b.c': [{ d: 1 }, { e: null }] }, f: 'x' })
  learn({ a: { 'b.c': { d: 2 } }, f: { g: 1 } })
  expect(told).toEqual(['a', 'a.b\\.c', 'a.b\\.c.d', 'a.b\\.c.e', 'f', 'f.g'])
})

test('a record of four million characters is read, one more character counts as damage', () => {
  const issuer = resources.get('issuers')
  if (issuer === undefined) throw new Error('no issuers')
  const read = (length: number): number => {
    const frame = JSON.stringify({ id: 'i', text: '' }).length
    return readRecord(issuer, { id: 'i', text: 'x'.repeat(length - frame) }).text.length
  }
  expect(read(4_000_000)).toBe(4_000_000)
  expect(() => read(4_000_001)).toThrow('issuers i: a record of 4000001 characters')
  const inEvent = { ...event, record: { id: 'i', text: 'x'.repeat(3_900_000) } }
  expect(page(inEvent)).toBe('i')
  expect(page({ ...inEvent, more: 'x'.repeat(300_000) })).toMatch(/^issuer i: an event of 4\d{6} characters$/)
})

test('a deployment says whose it is, and whether the list of deployments would show it', () => {
  const deployment = resources.get('deployments')
  if (deployment === undefined) throw new Error('no deployments')
  const read = (more: object) => readRecord(deployment, { id: 'd', ...more })
  expect(read({ product_id: 'p', verification_status: 'verified' })).toMatchObject({ product: 'p', verified: true })
  expect(read({ product_id: { id: 'q' }, verification_status: '' })).toMatchObject({ product: 'q', verified: false })
  expect(read({ product_id: { name: 'q' } })).toMatchObject({ product: '{"name":"q"}', verified: false })
  expect(read({ product_id: 7 })).toMatchObject({ product: '7' })
  expect(typedFields(deployment, { id: 'd', product_id: null })['product_id']).toBeNull()
})

test('a table that a whole state lacks counts as empty if shrinking is accepted', () => {
  const held = new Map([['issuers', new Map()]])
  const all = withMissing(held, resources)
  expect([...all.keys()].toSorted()).toEqual([...resources.keys()].toSorted())
  expect([all.get('issuers') === held.get('issuers'), all.get('products')?.size]).toEqual([true, 0])
})
