import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'

/** A dependency of the program that package.json pins to one release. */
export interface Pin {
  readonly name: string
  /** The release that is installed: `24.22.3`. */
  readonly version: string
}

/** The dependencies of the program itself, those of each platform included. */
export function readPins(packageJson: string): readonly Pin[] {
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(packageJson) as {
    dependencies?: Record<string, string>
    optionalDependencies?: Record<string, string>
  }
  return Object.entries({ ...dependencies, ...optionalDependencies }).map(([name, version]) => ({ name, version }))
}

/**
 * The newest release of the line that a pin is on, null if the pin is the newest. A line is a major version, before 1.0 a
 * minor one; releases with a suffix (`-beta.1`, DuckDB's `-r.2`) count only if they have the suffix of the pin's kind.
 */
export function newerRelease(pinned: string, released: readonly string[]): string | null {
  const here = parseRelease(pinned)
  if (here === null) return null
  const newer = released.flatMap((text) => {
    const release = parseRelease(text)
    return release !== null && release.line === here.line && compare(release, here) > 0 ? [{ text, release }] : []
  })
  return newer.toSorted((a, b) => compare(a.release, b.release)).at(-1)?.text ?? null
}

interface Release {
  readonly line: string
  /** Major, minor, patch, and the number of a rebuild, 0 without one. */
  readonly numbers: readonly number[]
}

function parseRelease(text: string): Release | null {
  const match = /^(\d+)\.(\d+)\.(\d+)(?:-(r)\.(\d+))?$/.exec(text)
  if (match === null) return null
  const [, major = '', minor = '', patch = '', rebuilt = '', rebuild = '0'] = match
  return {
    line: `${major === '0' ? `0.${minor}` : major}${rebuilt}`,
    numbers: [major, minor, patch, rebuild].map(Number),
  }
}

function compare(a: Release, b: Release): number {
  const at = a.numbers.findIndex((number, i) => number !== b.numbers[i])
  return at < 0 ? 0 : (a.numbers[at] ?? 0) - (b.numbers[at] ?? 0)
}

/** The lines that CI shows: a notice for each pin with a newer release, and one if a registry could not be reached. */
export async function noticesOf(
  pins: readonly Pin[],
  listReleases: (name: string) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const notices = await Promise.all(
    pins.map(async ({ name, version }) => {
      try {
        const newer = newerRelease(version, await listReleases(name))
        return newer === null ? [] : [`notice: ${name} is pinned to ${version}, ${newer} is there`]
      } catch {
        return [`notice: the releases of ${name} could not be listed, pinned to ${version}`]
      }
    }),
  )
  return notices.flat()
}

async function listReleasesByNpm(name: string): Promise<readonly string[]> {
  const line = ['view', name, 'versions', '--json', '--fetch-retries=0', '--fetch-timeout=20000']
  const { stdout } = await promisify(execFile)('npm', line, { timeout: 30_000, maxBuffer: 16_000_000 })
  const releases: unknown = JSON.parse(stdout)
  return Array.isArray(releases) ? releases.map(String) : [String(releases)]
}

if (import.meta.main) {
  const pins = readPins(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const notices = await noticesOf(pins, listReleasesByNpm)
  for (const notice of notices) console.log(notice)
  if (notices.length === 0) console.log(`all ${pins.length} pinned packages are the newest release of their line`)
}
