import { Engine } from '../store/engine.ts'
import { liveFiles } from '../ledger/held.ts'
import { Ledger } from '../ledger/ledger.ts'
import { type MetricSize, metricSizes } from './metric-sizes.ts'
import { type VersionChange, versionChanges } from '../ledger/version-changes.ts'

/** What the points of a lake cost on disk, metric by metric. */
export async function reportSizes(root: string): Promise<MetricSize[]> {
  using ledger = await Ledger.openToRead(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  return await metricSizes(engine, root, liveFiles(ledger, { table: 'points' }))
}

/** What every commit of a lake added, replaced and removed, oldest first. */
export async function listVersions(root: string): Promise<VersionChange[]> {
  using ledger = await Ledger.openToRead(root)
  return versionChanges(ledger)
}
