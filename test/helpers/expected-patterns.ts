import { expect } from 'vitest'

let isAdded = false

/** Lets a pattern among expected values match texts, once for a process: `toMatchObject` alone takes any text for it. */
export function matchExpectedPatterns(): void {
  if (isAdded) return
  isAdded = true
  expect.addEqualityTesters([
    (actual: unknown, expected: unknown) =>
      typeof actual === 'string' && expected instanceof RegExp ? expected.test(actual) : undefined,
  ])
}
