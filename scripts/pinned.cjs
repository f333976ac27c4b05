// The Node 24 that npm installed beside the program, for a system whose own Node is older: npm 10 sometimes deletes the
// `node_modules/.bin/node` link that would have made it the first in the path.
const { existsSync } = require('node:fs')
const { dirname, join } = require('node:path')

const [major, minor] = process.versions.node.split('.').map(Number)

/** Whether this Node can run the program itself. */
exports.newEnough = major >= 24

/** Whether this Node can run the library. */
exports.libraryRuns = major > 22 || (major === 22 && minor >= 19)

/** The path of the pinned Node; without one the process says what to do and ends. */
exports.pinnedNode = () => {
  const system = process.platform === 'win32' ? 'win' : process.platform
  try {
    const folder = dirname(require.resolve(`node-${system}-${process.arch}/package.json`))
    const file = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    if (existsSync(file)) return file
  } catch {}
  const here = `${process.platform}-${process.arch}`
  console.error(
    `pitlake: expected Node 24 or later, got ${process.versions.node}, and npm has brought none for ${here}; ` +
      'install Node 24 (nodejs.org, or `nvm install 24`) and run the same command again',
  )
  process.exit(2)
}
