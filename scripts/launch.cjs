#!/usr/bin/env node
// The entry of the program: runs it right here, or, if this Node lacks security fixes, as a child on the pinned one.
const { existsSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const { canRunProgram, findPinnedNode } = require('./pinned.cjs')

// Packed it stands beside this file, in the project it runs from source.
const packed = join(__dirname, 'main.js')
const program = existsSync(packed) ? packed : join(__dirname, '../src/main.ts')

if (canRunProgram(process.versions.node)) {
  require('./imports.cjs').quicken()
  void import(pathToFileURL(program).href)
} else {
  const { spawn } = require('node:child_process')
  const { constants } = require('node:os')
  const line = [...process.execArgv, program, ...process.argv.slice(2)]
  const child = spawn(findPinnedNode(), line, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
  // Ctrl-C reaches both of us, a kill only this process: the child is told how often, and counts the larger number.
  // SIGHUP is left alone, lest nohup lose its meaning: it ends this process, and the child sees the pipe close.
  let stops = 0
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.send({ stops: ++stops }, () => {}))
  child.on('error', (error) => {
    console.error(`pitlake: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)))
}
