import { existsSync, readFileSync } from 'node:fs'

/**
 * The largest memory that this process, or another one on Linux, ever held, in megabytes. What Linux calls its `maxRSS`
 * begins with what the process held that started it, so beside a large one every child would look alike.
 */
export function mostMemory(pid = 'self'): number {
  const own = `/proc/${pid}/status`
  const told = existsSync(own) ? /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(own, 'utf8'))?.[1] : undefined
  return Math.round(Number(told ?? process.resourceUsage().maxRSS) / 1024)
}
