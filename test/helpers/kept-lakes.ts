import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { zstdDecompressSync } from 'node:zlib'
import type { Engine } from '../../src/lake/store/engine.ts'
import { createSandbox } from '../../src/sandbox/sandbox.ts'
import { parseFault } from '../../src/sandbox/faults.ts'
import { parseInstant } from '../../src/base/time.ts'
import { fetchKey } from './fetching.ts'
import { mounts } from './mounts.ts'
import { catalogue } from './sandbox-client.ts'
import { SmallRegistry } from './small-registry.ts'
import { ownFolder } from './own-folder.ts'

const folder = fileURLToPath(new URL('../lakes/', import.meta.url))

/** What a lake said when it was made: rows and digest by the name of the question, and its newest commit. */
export interface Frozen {
  readonly lake: string
  readonly version: number
  /** Unix microseconds. */
  readonly committed_at: number
  readonly asked: Readonly<Record<string, { readonly rows: number; readonly digest: string | null }>>
  /** The same questions by what the lake held at an earlier instant, where it kept something of its own. */
  readonly earlier?: { readonly at: number; readonly asked: Frozen['asked'] }
}

/** The kept lakes as `layout/name`. */
export function keptLakes(): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => readdirSync(join(folder, name)).map((file) => `${name}/${file}`))
    .filter((path) => path.endsWith('.tar.zst'))
    .map((path) => path.replace('.tar.zst', ''))
    .toSorted()
}

/** What was written down of a kept lake when it was made. */
export const frozen = (kept: string): Frozen => JSON.parse(readFileSync(join(folder, `${kept}.json`), 'utf8')) as Frozen

/** Puts a copy of a kept lake into a folder, `<home>/lake`, results beside it; gives the lake's. */
export function unpackKept(kept: string, home: string): string {
  const packed = readFileSync(join(folder, `${kept}.tar.zst`))
  execFileSync('tar', ['-xf', '-', '-C', home], { input: zstdDecompressSync(packed) })
  return join(home, 'lake')
}

/** A copy of a kept lake in a folder of its own. */
export async function withKept(kept: string, work: (root: string, home: string) => Promise<void>): Promise<void> {
  using home = ownFolder('kept')
  await work(unpackKept(kept, home.path), home.path)
}

const series = 'metric, asset, "interval", currency, exchange, network'

/** The questions that every lake is asked, whatever it holds; each names its columns, since views gain some at the end. */
export const questions: Readonly<Record<string, string>> = {
  points: `SELECT ${series}, t, available_at, observed_at, v, o, basis, extra, computed_at FROM points`,
  components: `SELECT ${series}, t, available_at, observed_at, component, v, basis FROM components`,
  metric_assets: 'SELECT id, symbol FROM metric_assets',
  ...Object.fromEntries(
    [
      'issuers',
      'assets',
      'products',
      'deployments',
      'venues',
      'derivatives',
      'provenance',
      'documents',
      'listings',
    ].map((table) => [`history.${table}`, `SELECT valid_from, valid_to, op, record FROM history.${table}`]),
  ),
}

/** Questions about the ledger: they answer otherwise after every job. */
export const ledgerQuestions: Readonly<Record<string, string>> = {
  coverage: `SELECT ${series}, since, until, state, reason FROM coverage`,
  violations: `SELECT ${series}, t, kind, stored, offered FROM violations`,
  clock_findings: `SELECT metric, asset, t, kind FROM clock_findings`,
  snapshots: 'SELECT snapshot_date, id FROM snapshots.products',
  universe: 'SELECT product_id, status FROM universe',
}

/** Asks each question and digests the rows in the order of their text. */
export async function answer(engine: Engine, asked: Readonly<Record<string, string>>): Promise<Frozen['asked']> {
  await engine.run("SET TimeZone = 'UTC'")
  const answers: Record<string, { rows: number; digest: string | null }> = {}
  for (const [name, sql] of Object.entries(asked)) {
    const text = `SELECT CAST(r AS VARCHAR) AS line FROM (${sql}) r`
    const [row] = await engine.rows(
      `SELECT count(*) AS n, md5(string_agg(line, chr(10) ORDER BY line)) AS digest FROM (${text})`,
    )
    const digest = row?.['digest']
    answers[name] = { rows: Number(row?.['n']), digest: typeof digest === 'string' ? digest : null }
  }
  return answers
}

/** The clock at which the kept lakes of a fixed clock were begun, Unix seconds. */
export const begun = parseInstant('2024-03-01T06:00Z') as number

/** What the lakes hold: numbers of two kinds, objects, two currencies, two assets. */
export const keptSelection = {
  assets: ['BTC', 'ETH'],
  paths: ['supply/current_pit', 'addresses/active_count_pit', 'addresses/supply_distribution_relative_pit'],
  intervals: ['24h' as const],
  currencies: ['native', 'usd'],
  since: parseInstant('2024-01-01') as number,
}

/** A sandbox of a seed on a port, with a clock that is set by hand. */
export async function withProviderOf(
  seed: number,
  clock: { now: number },
  work: (urls: { metrics: string; registry: string; faults: (...texts: readonly string[]) => void }) => Promise<void>,
): Promise<void> {
  const sandbox = createSandbox({
    catalogue,
    seed,
    now: () => clock.now,
    sleep: async (ms) => await setTimeout(Math.min(ms, 50)),
    scale: 'demo',
    metricsKey: fetchKey,
    registryKey: fetchKey,
  })
  const mounted = await mounts.find((mount) => mount.name === 'port')?.start(sandbox)
  if (!mounted) throw new Error('no port mount')
  try {
    const faults = (...texts: readonly string[]): void => sandbox.setFaults(texts.map(parseFault))
    await work({ metrics: mounted.metricsUrl, registry: mounted.registryUrl, faults })
  } finally {
    await mounted.stop()
  }
}

/** The registry of the lake with two epochs, told up to a chapter (0, 1, 2; 3 is for whoever tops it up). */
export function registryStory(chapter: number): { readonly world: SmallRegistry; readonly answer: typeof said } {
  const world = new SmallRegistry()
  if (chapter >= 1) {
    world.world.put('products', 'p3', { name: 'Product 3, renamed', issuer_id: 'i3' })
    world.world.put('products', 'p20', { name: 'Product 20', issuer_id: 'i4', further: { notes: ['x', null] } })
    world.world.put('issuers', 'i29', null)
  }
  if (chapter >= 2) {
    world.epoch = 1
    world.world.put('products', 'p5', { name: 'Product 5 of the second epoch', issuer_id: 'i5' })
    world.world.put('deployments', 'd7', null)
  }
  if (chapter >= 3) world.world.put('products', 'p21', { name: 'Product 21', issuer_id: 'i1' })
  const said = (request: Request): Response => {
    const response = world.answer(request)
    response.headers.set('x-pitlake-sandbox', '5')
    return response
  }
  return { world, answer: said }
}
