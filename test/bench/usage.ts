import { writeFileSync } from 'node:fs'
import { mostMemory } from './memory.ts'

// Loaded before a program: at its end it leaves its processor seconds and its largest memory in megabytes in a file.
process.on('exit', () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage()
  const cpu = (userCPUTime + systemCPUTime) / 1e6
  writeFileSync(process.env['PITLAKE_BENCH_USAGE'] ?? '', JSON.stringify({ cpu, megabytes: mostMemory() }))
})
