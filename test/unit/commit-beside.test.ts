import { expect, test, vi } from 'vitest'
import { commit } from '../../src/ledger/commit.ts'
import type * as Journal from '../../src/ledger/journal.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { commitDeps, draftOf, inFolder } from '../helpers/lakes.ts'

/** What happens once between the listing of the journal and what is made of it. */
let meanwhile: (() => Promise<void>) | undefined

vi.mock('../../src/ledger/journal.ts', async (original) => {
  const real = await original<typeof Journal>()
  const listJournal: typeof real.listJournal = async (root) => {
    const listed = await real.listJournal(root)
    const work = meanwhile
    meanwhile = undefined
    await work?.()
    return listed
  }
  return { ...real, listJournal }
})

test('another job that commits while the journal is listed is no damage, and is caught up with next', async () => {
  await inFolder(async (root) => {
    const [other, own] = [await Ledger.open(root), await Ledger.open(root)]
    try {
      meanwhile = async () => void (await commit(other, draftOf(root, 0, 'other'), commitDeps()))
      await own.catchUp()
      expect(meanwhile).toBeUndefined()
      expect((await own.catchUp()).version).toBe(1)
    } finally {
      own.close()
      other.close()
    }
  })
})
