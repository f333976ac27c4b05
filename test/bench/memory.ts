import { existsSync, readFileSync } from 'node:fs'

const own = '/proc/self/status'

/**
 * The largest memory that this process ever held, in megabytes. What Linux calls its `maxRSS` begins with what the process
 * held that started it, so beside a large one every child would look alike.
 */
export function mostMemory(): number {
  const told = existsSync(own) ? /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(own, 'utf8'))?.[1] : undefined
  return Math.round(Number(told ?? process.resourceUsage().maxRSS) / 1024)
}
