#!/usr/bin/env node
import { enableCompileCache } from 'node:module'

// Compiled code is kept between runs; the command line is loaded after that so that it profits, too.
enableCompileCache()
const { runCommandLine } = await import('./interfaces/commands/run-command-line.ts')
process.exitCode = await runCommandLine(process.argv.slice(2))
