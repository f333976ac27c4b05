import type { Ledger } from '../ledger/ledger.ts'
import { ownScript } from './altered.ts'
import { openQuery, type Setting } from './lake.ts'
import { provedStamp, refuseOutcome } from './stamp.ts'
import type { StressSource } from './stress.ts'
import { vintagesOf } from './vintages.ts'

/** A query over the newest version, with so many earlier ones to try. */
export async function sourceOfQuery(
  ledger: Ledger,
  query: string,
  variables: Readonly<Record<string, Setting>>,
  vintages: number,
): Promise<StressSource> {
  const { root } = ledger
  // Opened as any session would be: a lake without views, of another folder or damaged is told in the same words.
  using session = await openQuery(root)
  const [row] = await session.rows('SELECT version FROM lake_info')
  const version = Number(row?.['version'])
  return {
    root,
    script: await ownScript(root),
    query,
    variables,
    anyVariable: false,
    version,
    vintages: vintagesOf(ledger, { version, variables }, vintages),
  }
}

/** A stamped result: its query over the version that it was made from, with the views of then. */
export async function sourceOfStamp(ledger: Ledger, path: string, vintages: number): Promise<StressSource> {
  const { note, script } = await provedStamp(ledger, path)
  refuseOutcome(note, path)
  const { query, variables, version } = note
  return {
    root: ledger.root,
    script,
    query,
    variables,
    anyVariable: true,
    version,
    vintages: vintagesOf(ledger, { version, variables }, vintages),
  }
}
