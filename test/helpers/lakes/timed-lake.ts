import { rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { loadCatalogue } from '../../../src/catalog/load.ts'
import { applySettings, resolveSettings } from '../../../src/catalog/settings.ts'
import { exitCode } from '../../../src/base/errors.ts'
import { fetchSeries } from '../../../src/sources/metrics/fetch.ts'
import { type IngestSummary, verdict } from '../../../src/sources/metrics/run-summary.ts'
import { buildViews } from '../../../src/query/views/build.ts'
import { Ledger } from '../../../src/lake/ledger/ledger.ts'
import { type Ended, pitlake } from '../command.ts'
import { depsAt, fetchKey } from '../fetching.ts'
import { endOf, type Given, type Spell, startAfter, type Told } from '../time-twin.ts'
import { makeFolder } from '../folders.ts'

/** A series of a provider of a test: what identifies it in a request, and its points. */
export interface Line {
  readonly path: string
  readonly asset: string
  /** Null where the endpoint takes none: its points are a day apart. */
  readonly interval: Spell | null
  readonly points: readonly Told[]
}

/** What a provider with these lines is like. */
export interface Provider {
  readonly lines: readonly Line[]
  /** What its `t` marks. */
  readonly marks?: 'start' | 'end'
  /** What its metadata call the first `t`; no metadata unless said. */
  readonly begins?: number
}

/** A lake, its `pitlake.yaml`, and a provider whose clock may differ from the local one. */
export interface TimedLake {
  readonly root: string
  /** One fetch with the local clock standing at this second; `date`: what the provider's says, null for no `Date`. */
  fetchAt(local: number, date?: number | null): Promise<IngestSummary>
  /** The same with the exit code. */
  fetchCode(local: number): Promise<number>
  /** The answers to a line in order, in terms of interval starts. */
  answersTo(line: Line): readonly Given[]
  /** The query of every request for a line. */
  readonly queries: readonly URLSearchParams[]
  /** Builds the views. */
  views(): Promise<void>
  /** Another configuration from now on. */
  configure(yaml: string): void
  /** A command line in this lake. */
  run(argv: readonly string[], local: number): Promise<Ended>
}

/** The program's clock, and what the provider's answers are dated by. */
interface Stage {
  readonly local: number
  readonly date: number | null
}

const keyOf = (path: string, asset: string, interval: string | null): string => `${path} ${asset} ${interval}`

/** What a provider says to a question of a line, and how that is remembered. */
function answerTo(line: Line, query: URLSearchParams, marks: 'start' | 'end', stage: Stage) {
  const clock = stage.date ?? stage.local
  const interval = line.interval ?? '24h'
  const mark = (t: number): number => (marks === 'end' ? endOf(t, interval) : t)
  const since = Number(query.get('s') ?? -1e12)
  const until = Number(query.get('u') ?? 1e12)
  const shown = line.points.filter(({ t, shown }) => shown <= clock && since <= mark(t) && mark(t) < until)
  const back = (at: number): number => (marks === 'end' && Math.abs(at) < 1e12 ? startAfter(at, interval, -1) : at)
  const starts = new Set(shown.map(({ t }) => t))
  const given: Given = { since: back(since), until: back(until), asked: stage.local, date: stage.date, starts }
  const body = shown.map(({ t, v, computed }) => ({
    t: mark(t),
    // What has not ended is not final.
    v: endOf(t, interval) <= clock ? v : -1,
    ...(typeof computed === 'number' ? { computed_at: computed } : {}),
  }))
  return { given, body }
}

/** Runs the work; the clock of the program stands still but for its own waits, so that every instant is exact. */
export async function withTimedLake(
  yaml: string,
  { lines, marks = 'start', begins }: Provider,
  work: (lake: TimedLake) => Promise<void>,
): Promise<void> {
  const root = makeFolder('timed')
  const byKey = new Map(lines.map((line) => [keyOf(line.path, line.asset, line.interval), line]))
  const given = new Map<Line, Given[]>()
  const queries: URLSearchParams[] = []
  let stage: Stage = { local: 0, date: null }
  const server = createServer((request, response) => {
    const address = new URL(request.url ?? '/', 'http://localhost')
    const query = address.searchParams
    response.sendDate = false
    if (stage.date !== null) response.setHeader('date', new Date(stage.date * 1000).toUTCString())
    if (address.pathname === '/v1/metadata/metric' && begins !== undefined)
      return void response.end(JSON.stringify({ parameters: {}, timerange: { min: begins } }))
    const path = decodeURIComponent(address.pathname.replace('/v1/metrics/', '')).replace(/^real\//, '')
    const line = byKey.get(keyOf(path, query.get('a') ?? '', query.get('i')))
    if (line === undefined) return void response.writeHead(path === 'assets' ? 404 : 400).end('{"error":"unknown"}')
    queries.push(query)
    const { given: one, body } = answerTo(line, query, marks, stage)
    given.set(line, [...(given.get(line) ?? []), one])
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const env = { PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: fetchKey, PITLAKE_DATA: root }
  const home = makeFolder('timed-home')
  const configure = (text: string): void => writeFileSync(join(home, 'pitlake.yaml'), text)
  configure(yaml)
  const configured = () => {
    const settings = resolveSettings({ flags: {}, env, cwd: home })
    return { settings, catalogue: applySettings(loadCatalogue(settings.catalogs), settings) }
  }
  const depsFrom = (local: number) => {
    let ms = local * 1000
    return {
      ...depsAt({ root, url, now: () => local }),
      now: () => ms,
      nowMicros: () => Math.floor(ms * 1000),
      wait: async (own: number) => void (ms += own),
    }
  }
  const fetchAt = async (local: number, date: number | null = local): Promise<IngestSummary> => {
    stage = { local, date }
    const { settings, catalogue } = configured()
    const input = { settings, catalogue, selections: settings.select, gapsOnly: false, now: local }
    return await fetchSeries({ ...input, maxRequests: null, providerMoved: false }, depsFrom(local))
  }
  try {
    await work({
      root,
      fetchAt,
      fetchCode: async (local) => {
        const error = verdict(await fetchAt(local))
        return error === null ? 0 : exitCode(error)
      },
      answersTo: (line) => given.get(line) ?? [],
      queries,
      views: async () => {
        using ledger = await Ledger.open(root)
        await buildViews(ledger, { catalogue: configured().catalogue, deps: depsFrom(stage.local) })
      },
      configure,
      run: async (argv, local) => await pitlake(home, argv, env, { now: () => local * 1000 }),
    })
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    rmSync(root, { recursive: true, force: true })
    rmSync(home, { recursive: true, force: true })
  }
}
