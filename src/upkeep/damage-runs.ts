import { type Damage, lostIn } from './damage.ts'
import { statOf } from '../store/disk.ts'
import { soundly } from '../ledger/fold.ts'
import { listJournal } from '../ledger/journal.ts'
import { inLake, places } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'

/** Files of runs that the ledger has read, that are not there any more, and that no sound checkpoint stands in for. */
export async function checkRuns(ledger: Ledger): Promise<Damage[]> {
  const missing = new Map<string, number>()
  for (const [name, offset] of offsetsOf(ledger)) {
    const size = (await statOf(inLake(ledger.root, `${places.runs}/${name}`)))?.size ?? 0
    if (size < offset) missing.set(name, offset)
  }
  if (missing.size === 0) return []
  const { folded } = await listJournal(ledger.root)
  const held = folded === 0 ? undefined : await soundly(ledger.root, folded)
  const kept = held ? offsetsOf(held) : new Map<string, number>()
  held?.close()
  const [first, ...others] = [...missing].filter(([name, offset]) => (kept.get(name) ?? 0) < offset)
  if (first === undefined) return []
  const count = others.length + 1
  return [
    lostIn(
      'runs_lost',
      `${places.runs}/${first[0]}`,
      `${count} ${count === 1 ? 'file of a run is' : 'files of runs are'} gone or cut: only the ledger knows their requests, and what was asked again`,
      'put them back from a copy; while the ledger is sound, pitlake doctor --repair keeps what it knows. No point is lost',
    ),
  ]
}

function offsetsOf(ledger: Ledger): Map<string, number> {
  const rows = ledger.statement('SELECT name, offset FROM run_files ORDER BY name').all()
  return new Map(rows.map((row) => [String(row['name']), Number(row['offset'])]))
}
