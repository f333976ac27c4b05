import { Ledger } from '../../src/ledger/ledger.ts'

type Look<T> = (ledger: Ledger) => T | Promise<T>

/** What the ledger of a lake says, opened to be read for this look alone. */
export async function reading<T>(root: string, look: Look<T>): Promise<T> {
  using ledger = await Ledger.openToRead(root)
  return await look(ledger)
}

/** Does something with the ledger of a lake, opened for this work alone. */
export async function writing<T>(root: string, work: Look<T>): Promise<T> {
  using ledger = await Ledger.open(root)
  return await work(ledger)
}
