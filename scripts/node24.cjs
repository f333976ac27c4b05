// Loaded before a script of this project: on a Node that is too old it hands over to the pinned one and waits for it.
const { newEnough, pinnedNode } = require('./pinned.cjs')

if (newEnough) require('./imports.cjs').quicken()
else {
  const { spawnSync } = require('node:child_process')
  const run = spawnSync(pinnedNode(), [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit' })
  process.exit(run.status ?? 1)
}
