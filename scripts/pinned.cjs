// Which Node may run pitlake, and the Node that npm installed with it, for a system whose own is too old: npm 10 sometimes
// deletes the `node_modules/.bin/node` link that would have made it the first in the path.
const { existsSync } = require('node:fs')
const { dirname, join } = require('node:path')

/** First release of each line of Node with the security fixes of 2026-10-21; a line between two of these has none. */
const fixedReleases = ['22.23.4', '24.22.1', '26.12.1']

/** The releases as an error names them. */
exports.fixedReleases = 'Node 22.23.4, 24.22.1, 26.12.1 or later'

/** Whether this release of Node ("24.22.3") has the security fixes. */
exports.isFixed = (version) => {
  const [major, minor, patch] = numbersOf(version)
  const same = fixedReleases.map(numbersOf).find(([line]) => line === major)
  if (same === undefined) return major > numbersOf(fixedReleases.at(-1))[0]
  return minor > same[1] || (minor === same[1] && patch >= same[2])
}

function numbersOf(version) {
  return version.split('.').map(Number)
}

/** Whether this release of Node may run the program itself, which needs a Node 24. */
exports.canRunProgram = (version) => exports.isFixed(version) && numbersOf(version)[0] >= 24

/** The path of the pinned Node; without one the process says what to do and ends. */
exports.findPinnedNode = () => {
  const system = process.platform === 'win32' ? 'win' : process.platform
  try {
    const folder = dirname(require.resolve(`node-${system}-${process.arch}/package.json`))
    const file = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    const { version } = require(join(folder, 'package.json'))
    if (!exports.canRunProgram(version))
      console.error(
        `pitlake: Node ${version} of the npm packages lacks security fixes; ` +
          'install Node 24.22.1, 26.12.1 or later (nodejs.org), which pitlake then prefers',
      )
    if (existsSync(file)) return file
  } catch {}
  const here = `${process.platform}-${process.arch}`
  console.error(
    `pitlake: expected Node 24.22.1, 26.12.1 or later, got ${process.versions.node}, and npm has installed none for ${here}; ` +
      'install Node 24 (nodejs.org, or `nvm install 24`) and run the same command again',
  )
  process.exit(2)
}
