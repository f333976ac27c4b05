import { expect } from 'vitest'

/** A pattern among expected values stands for the texts that match it: by itself `toMatchObject` takes any text for it. */
expect.addEqualityTesters([
  (actual: unknown, expected: unknown) =>
    typeof actual === 'string' && expected instanceof RegExp ? expected.test(actual) : undefined,
])
