import { readFileSync } from 'node:fs'

/** The program's name and version, as entries and footers name it. */
export function programName(): string {
  return `pitlake ${programVersion()}`
}

/** The program's version. */
export function programVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
