import { expect, test } from 'vitest'
import { partOf } from '../helpers/shares.ts'

test('cases that go by turn are all tried after as many turns, each once, about as many with each', () => {
  for (const length of [1, 2, 5, 12, 97])
    for (const every of [1, 2, 3, 14]) {
      const all = Array.from({ length }, (_, n) => n)
      const turns = Array.from({ length: every }, (_, nth) => partOf(all, every, nth + 40))
      expect(turns.flat().toSorted((a, b) => a - b)).toEqual(all)
      const most = Math.ceil(length / every)
      for (const part of turns) expect([most, most - 1]).toContain(part.length)
    }
})
