import fc from 'fast-check'
import { expect, test } from 'vitest'
import { smallestPart } from '../../src/trust/results/explain-text.ts'

test('the smallest necessary part of a list is found in a logarithmic number of tries', async () => {
  for (const size of [1, 2, 3, 1000, 4096]) {
    const all = Array.from({ length: size }, (_, n) => n)
    let tries = 0
    const wanted = Math.floor(size * 0.71)
    const found = await smallestPart(
      all,
      async (part) => {
        tries++
        return await Promise.resolve(part.includes(wanted))
      },
      1000,
    )
    expect(found).toEqual({ part: [wanted], minimal: true })
    expect(tries).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(size)))
  }
})

test('a found part has the effect of the whole, and none of its elements can be left out', async () => {
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 24 }),
    fc.array(fc.array(fc.nat(23), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 }),
    async (size, ways) => {
      const all = Array.from({ length: size }, (_, n) => n)
      const own = ways.map((way) => way.map((n) => n % size))
      const does = (part: readonly number[]): boolean => own.some((way) => way.every((n) => part.includes(n)))
      const { part, minimal } = await smallestPart(all, async (one) => await Promise.resolve(does(one)), 100_000)
      expect(minimal).toBe(true)
      expect(does(part)).toBe(true)
      for (const one of part) expect(part.length > 1 && does(part.filter((other) => other !== one))).toBe(false)
    },
  )
  await fc.assert(property, { numRuns: 300 })
})

test('if the tries do not suffice, the smallest part so far is returned as not final', async () => {
  const all = Array.from({ length: 64 }, (_, n) => n)
  const { part, minimal } = await smallestPart(all, async (one) => await Promise.resolve(one.includes(60)), 3)
  expect(minimal).toBe(false)
  expect(part).toContain(60)
  expect(part.length).toBeLessThan(64)
})

test('the search makes at most the allowed number of tries', async () => {
  const all = Array.from({ length: 8 }, (_, n) => n)
  for (const most of [1, 2, 5, 6]) {
    let tries = 0
    const does = async (part: readonly number[]): Promise<boolean> => {
      tries++
      return await Promise.resolve(part.includes(7))
    }
    const { minimal } = await smallestPart(all, does, most)
    expect([tries, minimal]).toEqual([most, most === 6])
  }
})
