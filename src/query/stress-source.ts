import { formatMicros, parseMicros } from '../time.ts'
import { heldVersions } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { ownScript } from './altered.ts'
import { openQuery, type Setting } from './lake.ts'
import { provedStamp } from './stamp.ts'
import type { StressSource } from './stress.ts'

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
    vintages: earlier(ledger, version, variables, vintages),
  }
}

/** A stamped result: its query over the version that it was made from, with the views of then. */
export async function sourceOfStamp(ledger: Ledger, path: string, vintages: number): Promise<StressSource> {
  const { note, script } = await provedStamp(ledger, path)
  const { query, variables, version } = note
  return {
    root: ledger.root,
    script,
    query,
    variables,
    anyVariable: true,
    version,
    vintages: earlier(ledger, version, variables, vintages),
  }
}

/**
 * So many of the versions before this one, and before what the query sees at most, that brought something (merges and
 * redatings take files away): evenly among them, the last with them.
 */
function earlier(
  ledger: Ledger,
  version: number,
  { observed_as_of: seen }: Readonly<Record<string, Setting>>,
  wanted: number,
): StressSource['vintages'] {
  const until = (typeof seen === 'string' ? parseMicros(seen) : undefined) ?? Infinity
  const told = heldVersions(ledger).filter(
    (one) => one.version < version && one.files_added > 0 && one.files_removed === 0 && one.committed_at < until,
  )
  const count = Math.min(wanted, told.length)
  const places = Array.from({ length: count }, (_, i) => Math.floor(((i + 1) * told.length) / count) - 1)
  return places.flatMap((place) => {
    const one = told[place]
    return one === undefined ? [] : [{ version: one.version, at: formatMicros(one.committed_at) }]
  })
}
