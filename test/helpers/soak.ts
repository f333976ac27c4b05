import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fetchOnce } from './fetching.ts'
import { simulate } from './watching.ts'

// A watch through so many simulated days, its sandbox in another process: a line of JSON a day with the
// least and the most that it held in memory, looked at hourly: what is held for good is in the least.
const days = Number(process.argv[2] ?? 7)
const day = 86_400
const hour = 3600
const begin = Date.UTC(2026, 2, 10, 12) / 1000
const daily = {
  assets: ['BTC', 'ETH'],
  paths: ['supply/current_pit', 'indicators/asol_pit', 'entities/active_count_pit'],
  intervals: ['24h'],
  since: begin - 60 * day,
}
const hourly = { assets: ['BTC'], paths: ['addresses/active_count_pit'], intervals: ['1h'], since: begin - 20 * day }

const home = mkdtempSync(join(tmpdir(), 'pitlake-soak-'))
const file = join(home, 'clock')
const clockFile = openSync(file, 'w+')
let instant = 0
const clock = {
  get now(): number {
    return instant
  },
  set now(to: number) {
    instant = to
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(to)
    writeSync(clockFile, bytes, 0, 8, 0)
  },
}
clock.now = begin
const provider = spawn(process.execPath, [fileURLToPath(new URL('soak-sandbox.ts', import.meta.url)), file], {
  stdio: ['ignore', 'pipe', 'inherit'],
})

/** Megabytes that Linux counts for this process once garbage is gone. */
function resident(): number {
  globalThis.gc?.()
  const pages = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return Math.round(Number(pages) / 102.4) / 10
}

try {
  const [line] = (await once(provider.stdout, 'data')) as [Buffer]
  const place = { root: join(home, 'lake'), url: line.toString().trim(), now: () => clock.now }
  for (const selection of [daily, hourly]) await fetchOnce(place, selection)
  let told = 0
  let hours: number[] = []
  await simulate(
    { ...place, clock },
    {
      selections: [daily, hourly],
      until: begin + (days + 0.1) * day,
      registry: true,
      onWait: (now) => {
        if (now >= begin + told * day + (hours.length + 1) * hour) hours.push(resident())
        if (now < begin + (told + 1) * day) return
        told++
        process.stdout.write(
          `${JSON.stringify({ day: told, resident: Math.min(...hours), most: Math.max(...hours) })}\n`,
        )
        hours = []
      },
    },
  )
} finally {
  provider.kill()
  rmSync(home, { recursive: true, force: true })
}
