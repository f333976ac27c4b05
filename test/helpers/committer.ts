import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { lockJob } from '../../src/lake/store/lock.ts'
import { openSpool, sweep } from '../../src/lake/ledger/spool-sweep.ts'
import { commitDeps, draftOf } from './lakes/drafts.ts'

// Commits step after step until the goal: `node committer.ts FOLDER NAME GOAL [metrics|registry]`.
const [root = '', name = 'r', goal = '0', api = 'metrics'] = process.argv.slice(2)
const deps = commitDeps()
const job = await lockJob(root, api, { ...deps.holder, since: deps.nowMicros() })
const ledger = await Ledger.open(root)
await sweep(ledger, deps)
const spool = await openSpool(root, name, deps)
const mine = (): number =>
  Number(ledger.statement('SELECT count(*) AS n FROM versions WHERE run = ?').get(name)?.['n'] ?? 0)
process.stdout.write('ready\n')
for (let step = mine(); step < Number(goal); step++) await commit(ledger, draftOf(root, step, name), deps)
await spool.close()
ledger.close()
await job.release()
