import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { rewriteDeps } from './lakes/top-ups.ts'

// Merges, compacts and vacuums a lake: `node compactor.ts FOLDER`; made to be killed.
const [root = ''] = process.argv.slice(2)
const deps = rewriteDeps()
process.stdout.write('ready\n')
const ledger = await Ledger.open(root)
await mergeSmallFiles(ledger, deps)
ledger.close()
await compact(root, deps)
await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews: () => Promise.resolve() })
