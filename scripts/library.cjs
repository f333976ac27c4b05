// What `import` and `require` of the package get: an old Node could not even link its modules, so it is refused before.
const { fixedReleases, isFixed } = require('./pinned.cjs')

if (!isFixed(process.versions.node)) {
  console.error(
    `pitlake: expected ${fixedReleases} to import it, got ${process.versions.node}; ` +
      'install Node 24 (nodejs.org, or `nvm install 24`); the command `pitlake` brings its own',
  )
  process.exit(2)
}

const library = require('./index.js')

exports.LakeError = library.LakeError
exports.explainChange = library.explainChange
exports.lookahead = library.lookahead
exports.noted = library.noted
exports.openLake = library.openLake
exports.rows = library.rows
exports.stress = library.stress
