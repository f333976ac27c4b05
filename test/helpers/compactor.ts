import { compact, mergeSmallFiles } from '../../src/upkeep/compact.ts'
import { vacuum } from '../../src/upkeep/vacuum.ts'
import { type Disk, realDisk } from '../../src/store/disk.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { rewriteDeps } from './merging.ts'

// Merges, compacts and vacuums a lake: `node compactor.ts FOLDER [STEP]` and kills itself before the disk's n-th step.
const [root = '', dieAt = '0'] = process.argv.slice(2)
let steps = 0
const mortal = Object.fromEntries(
  Object.entries(realDisk as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>).map(([name, act]) => [
    name,
    async (...args: unknown[]) => {
      if (++steps === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
      return await act(...args)
    },
  ]),
) as unknown as Disk
const deps = rewriteDeps({ disk: mortal })
process.stdout.write('ready\n')
const ledger = await Ledger.open(root)
await mergeSmallFiles(ledger, deps)
ledger.close()
await compact(root, deps)
await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews: () => Promise.resolve() })
process.stdout.write(`${steps}\n`)
