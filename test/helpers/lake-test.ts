import { test as base } from 'vitest'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { inFolder } from './folders.ts'

/** A test that may have a lake's folder of its own as `root`, and the lake in it open as `ledger`. */
export const test = base.extend<{ root: string; ledger: Ledger }>({
  // oxlint-disable-next-line no-empty-pattern -- what a fixture needs of others is read from here
  root: async ({}, use) => await inFolder(use),
  ledger: async ({ root }, use) => {
    using ledger = await Ledger.open(root)
    await use(ledger)
  },
})
