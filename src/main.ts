#!/usr/bin/env node
import { enableCompileCache } from 'node:module'

/** The smallest Node that runs this program without a build step and has `node:sqlite`. */
const needed = 24

const major = Number(process.versions.node.split('.')[0])
if (major < needed) {
  process.stderr.write(
    `pitlake: expected Node ${needed} or newer, got ${process.versions.node}; run it as \`npx pitlake\` (or \`npm run -s pitlake --\`), which brings its own Node\n`,
  )
  process.exit(2)
}
enableCompileCache?.()
const { runCommandLine } = await import('./commands/cli.ts')
process.exitCode = await runCommandLine(process.argv.slice(2))
