import { runCommandLine } from '../../src/interfaces/commands/run-command-line.ts'
import { mostMemory } from './memory.ts'

// Runs a command line and tells the largest memory that the process ever held, in megabytes, as the last line.
process.exitCode = await runCommandLine(process.argv.slice(2))
console.log(JSON.stringify({ megabytes: mostMemory() }))
