// Runs before anything is installed, on whatever Node is there: the lockfile proves the binaries of some platforms only.
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { canRunProgram } = require('./pinned.cjs')

const platform = `${process.platform}-${process.arch}`
const root = join(__dirname, '..')
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
const proved = `node_modules/@duckdb/node-bindings-${platform}` in packages

if (!proved) {
  const here = process.versions.node
  const node = canRunProgram(here) ? '' : `install Node 24.22.1, 26.12.1 or later (here is ${here}: nodejs.org, or nvm install 24), `
  console.error(`pitlake: package-lock.json proves no binaries for ${platform}; ${node}run:
  npm install --no-package-lock --ignore-scripts
then type the same command again. npm then takes the binaries of this platform from your registry, at the versions of
package.json and by the registry's own checksums.`)
  process.exit(2)
}
