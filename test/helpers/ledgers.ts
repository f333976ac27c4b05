import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, type Row } from '../../src/lake/store/engine.ts'
import { readPoints } from '../../src/query/views/relations.ts'

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

/** What a SELECT gives of all points that a lake holds now, from their files; `order` stands behind FROM. */
export async function heldPoints<R extends Row>(root: string, select: string, order = 'ORDER BY ALL'): Promise<R[]> {
  const files = await reading(root, (ledger) => liveFiles(ledger, { table: 'points' }))
  if (files.length === 0) return []
  using engine = await Engine.open()
  return await engine.rows<R>(`SELECT ${select} FROM ${readPoints(root, files)} ${order}`)
}
