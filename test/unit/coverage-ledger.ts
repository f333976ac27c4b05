import type { CoverageRow } from '../../src/lake/ledger/entry.ts'
import type { Ledger } from '../../src/lake/ledger/ledger.ts'

/** As much of a ledger as tells the live coverage of one series. */
export function seriesLedger(id: string, rows: readonly CoverageRow[]): Ledger {
  const told = rows.map(({ series: _series, ...row }) => ({ id, ...row }))
  const statement = { iterate: (...values: unknown[]) => (values[0] === id ? told : []) }
  // Cast: of a ledger only its statement is asked, and of that only its rows.
  return { statement: () => statement } as unknown as Ledger
}
