// Loaded before a script of this project: on a Node that lacks security fixes it hands over to the pinned one and waits for it.
const { canRunProgram, findPinnedNode } = require('./pinned.cjs')

// The pinned Node stays where it is, also on a platform that has no fixed one: it would hand over to itself for ever.
const handedOver = 'PITLAKE_PINNED_NODE'
if (canRunProgram(process.versions.node) || process.env[handedOver] === process.execPath) require('./imports.cjs').quicken()
else {
  const { spawnSync } = require('node:child_process')
  const node = findPinnedNode()
  const env = { ...process.env, [handedOver]: node }
  const run = spawnSync(node, [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit', env })
  process.exit(run.status ?? 1)
}
