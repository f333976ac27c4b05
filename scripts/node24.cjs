// Loaded before anything else. On a Node that is too old it hands over to the Node 24 that npm installed beside the
// program: npm 10 sometimes deletes the `node_modules/.bin/node` link that would have made it the first in the path.
if (Number(process.versions.node.split('.')[0]) < 24) {
  const { spawnSync } = require('node:child_process')
  const { existsSync } = require('node:fs')
  const { dirname, join } = require('node:path')

  const pinned = () => {
    const system = process.platform === 'win32' ? 'win' : process.platform
    try {
      const folder = dirname(require.resolve(`node-${system}-${process.arch}/package.json`))
      const file = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
      return existsSync(file) ? file : undefined
    } catch {
      return undefined
    }
  }

  const node = pinned()
  if (node === undefined) {
    console.error(`pitlake: expected Node 24 or later, got ${process.versions.node}; install Node 24 and run npm ci again`)
    process.exit(2)
  }
  // The child gets the terminal's signals itself and decides how to end; this process only waits for it.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined)
  const run = spawnSync(node, [...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit' })
  process.exit(run.status ?? 1)
} else require('node:module').enableCompileCache?.()
