import { writeTopic } from './benchmarks-page.ts'
import { figures, type Measured, share } from './measured.ts'

/** What can be measured, by topic: each prints lines with ratios and fails where a bound is broken. */
const topics: Readonly<Record<string, () => Promise<void>>> = {
  queries: async () => await (await import('./queries.ts')).benchQueries(tell),
  conversion: async () => tell(await (await import('./conversion.ts')).benchConversion()),
  'first-fetch': async () => await (await import('./first-fetch.ts')).benchFirstFetch(tell),
  'top-up': async () => await (await import('./top-up.ts')).benchTopUp(tell),
  joins: async () => await (await import('./joins.ts')).benchJoins(tell),
  panel: async () => tell(await (await import('./panel.ts')).benchPanel()),
  python: async () => tell(await (await import('./python.ts')).benchPython()),
  commands: async () => tell(await (await import('./commands.ts')).benchCommands()),
  import: async () => tell(await (await import('./import.ts')).benchImport()),
  'disk-size': async () => tell(await (await import('./disk-size.ts')).benchDiskSize()),
}

/** What needs packages of others: of a share only where it is named.  */
const elsewhere = ['first-fetch', 'panel', 'python', 'queries']

/** Runs the topics of the command line, all without any. */
async function main(): Promise<void> {
  const named = process.argv.slice(2)
  const unknown = named.filter((name) => !Object.hasOwn(topics, name))
  if (unknown.length > 0) throw new Error(`no topic ${unknown.join(', ')}; there are ${Object.keys(topics).join(', ')}`)
  console.log(share === 1 ? 'median of A B A B rounds in one run' : `${share} of each: what fails counts, no figure`)
  const minutes = Number(process.env['PITLAKE_BENCH_MINUTES'] ?? Infinity)
  const all = Object.entries(topics).filter(([name]) => named.length === 0 || named.includes(name))
  const some = all.filter(([name]) => !elsewhere.includes(name))
  for (const [name, bench] of share < 1 && named.length === 0 ? some : all) {
    if (performance.now() > minutes * 60_000) {
      console.log(`\n${name}: left out after ${minutes} minutes; npm run -s bench -- ${name}`)
      continue
    }
    console.log(`\n${name}`)
    const begun = performance.now()
    // What breaks here does not silence the figures of the rest.
    await bench().catch((error: unknown) => {
      said(`FAILED: ${error instanceof Error ? error.message : String(error)}`)
      process.exitCode = 1
    })
    const seconds = (performance.now() - begun) / 1000
    if (share === 1)
      await writeTopic({ name, seconds, lines: lines.splice(0), figures: figures.splice(0) }, Object.keys(topics))
  }
}

/** What the topic at hand has told so far. */
const lines: string[] = []

function said(line: string): void {
  lines.push(line)
  console.log(line)
}

function tell(measured: readonly Measured[]): void {
  for (const { line, within } of measured) {
    said(line)
    if (!within && share === 1) process.exitCode = 1
  }
}

await main()
