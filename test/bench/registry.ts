import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Engine, quote, quoteName } from '../../src/lake/store/engine.ts'
import { readPage, readSnapshot, type Records } from '../../src/sources/registry/bodies.ts'
import { type HeldEntities, newPoll, observeEvent, fold } from '../../src/sources/registry/history.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeViews, withViews } from '../helpers/views.ts'
import { type Alone, inFolder, withProvider } from './registry-alone.ts'
import { fullBody, pagesOf, sampleOf, type World } from './registry-bodies.ts'
import { benchYear, type Bytes, daily } from './registry-year.ts'
import { judged, type Measured, median, scaled, share } from './measured.ts'

const { resources } = catalogue

/** Bounds of CPU seconds of a fold, of megabytes of a process, and of megabytes of tables a day. */
const bounds = { ratio: 3, fold: 5, memory: 500, daily: 3 } as const

/**
 * Full size: a snapshot against bare read_json -> COPY, 100,000 events, both alone in a process with its peak memory,
 * and days with 0.2 % changes.
 */
export async function benchRegistry(tell: (measured: readonly Measured[]) => void): Promise<void> {
  const text = await sharedBody()
  tell(await snapshotAgainstBare(text))
  tell(await manyEvents(text))
  tell([await dailyChanges(text)])
}

/** The views after a daily snapshot for a year, of half of the products, against those after one. */
export async function benchRegistryYear(): Promise<Measured[]> {
  return await benchYear(sampleOf(await sharedBody(), 2), scaled(364))
}

async function sharedBody(): Promise<string> {
  const text = await fullBody()
  return share === 1 ? text : JSON.stringify(sampleOf(text, Math.round(1 / share)))
}

interface Cost {
  readonly seconds: number
  readonly cpu: number
}

async function measured<T>(work: () => Promise<T> | T): Promise<Cost & { readonly value: T }> {
  const [at, before] = [performance.now(), process.cpuUsage()]
  const value = await work()
  const { user, system } = process.cpuUsage(before)
  return { value, seconds: (performance.now() - at) / 1000, cpu: (user + system) / 1e6 }
}

const told = ({ seconds, cpu }: Cost): string => `${seconds.toFixed(2)} s (${cpu.toFixed(2)} s CPU)`

async function snapshotAgainstBare(text: string, rounds = scaled(5)): Promise<Measured[]> {
  const world = JSON.parse(text) as World
  const pairs: (readonly [Alone, Cost])[] = []
  await withProvider({ snapshot: text }, async (run) => {
    for (let round = -1; round < rounds; round++) {
      const ours = await inFolder(async (root) => {
        const alone = await run('snapshot', root)
        for (const name of resources.keys())
          if (alone.summary.records[name] !== world[name]?.length) throw new Error(`${name}: not what the body holds`)
        if (round < 0) await sameRecords(root, world)
        return alone
      })
      const bare = await measured(async () => await bareCopy(text, round < 0 ? world : undefined))
      if (round >= 0) pairs.push([ours, bare])
    }
  })
  const of = (pick: (pair: readonly [Alone, Cost]) => number): number => median(pairs.map(pick))
  const ours = told({ seconds: of(([a]) => a.seconds), cpu: of(([a]) => a.cpu) })
  const bare = told({ seconds: of(([, b]) => b.seconds), cpu: of(([, b]) => b.cpu) })
  const [ratio, cpu] = [of(([a, b]) => a.seconds / b.seconds), of(([a, b]) => a.cpu / b.cpu)]
  const memory = Math.max(...pairs.map(([a]) => a.megabytes))
  const size = `${(text.length / 1e6).toFixed(1)} MB`
  return [
    judged(
      `snapshot body of ${size} -> committed tables ${ours}, bare read_json -> COPY ${bare}, by CPU ${cpu.toFixed(2)}, ratio ${ratio.toFixed(2)}`,
      ratio,
      bounds.ratio,
    ),
    judged(`peak memory of a process that takes this snapshot ${memory} MB`, memory, bounds.memory, ' MB'),
  ]
}

const linesOf = (records: readonly unknown[]): string[] => records.map((record) => canonical(record)).toSorted()

/** Fails unless the lake holds every record of the body as it came, and no other. */
async function sameRecords(root: string, world: World): Promise<void> {
  await makeViews(root)
  await withViews(root, async (engine) => {
    for (const name of resources.keys()) {
      const rows = await engine.rows<{ record: string }>(`SELECT record FROM ${quoteName(name)}`)
      const held = linesOf(rows.map(({ record }) => JSON.parse(record) as unknown))
      if (held.join('\n') !== linesOf(world[name] ?? []).join('\n')) throw new Error(`${name}: other records are held`)
    }
  })
}

/** The same text for records whose keys stand in another order. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}

async function bareCopy(text: string, world?: World): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-bare-'))
  const engine = await Engine.open(':memory:', { threads: 2 })
  try {
    const [body, out] = [join(folder, 'body.json'), join(folder, 'bare.parquet')]
    writeFileSync(body, text)
    const read = `read_json(${quote(body)}, maximum_object_size = 200000000)`
    await engine.run(`COPY (SELECT * FROM ${read}) TO ${quote(out)} (FORMAT parquet, COMPRESSION zstd)`)
    if (world === undefined) return
    for (const name of resources.keys()) {
      const [row] = await engine.rows<{ n: number }>(
        `SELECT sum(len(${quoteName(name)}))::INTEGER AS n FROM ${quote(out)}`,
      )
      if (Number(row?.n) !== world[name]?.length) throw new Error(`${name}: the bare copy is not one`)
    }
  } finally {
    engine.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A feed of 100,000 events over the deployments, in pages of 500: the whole job, and the fold alone. */
async function manyEvents(text: string, rounds = scaled(5)): Promise<Measured[]> {
  const [total, size] = [500 * scaled(200), 500]
  const pages = pagesOf(text, total, size)
  const versions = (JSON.parse(text) as World)['deployments']?.length
  const bodies = Object.fromEntries([...pages].map(([from, page]) => [`changes-${from}`, page]))
  const jobs: Alone[] = []
  await withProvider({ snapshot: text, ...bodies }, async (run) => {
    for (let round = 0; round < rounds; round++)
      await inFolder(async (root) => {
        await run('snapshot', root)
        const job = await run('sync', root)
        if (job.summary.events !== total || job.summary.updated !== versions) throw new Error('events are missing')
        jobs.push(job)
      })
  })
  const folds: Cost[] = []
  for (let round = 0; round < rounds; round++) {
    const fold = await foldAlone(text, [...pages.values()])
    if (fold.steps !== versions) throw new Error(`${fold.steps} steps instead of ${versions}`)
    folds.push(fold)
  }
  const job = { seconds: median(jobs.map(({ seconds }) => seconds)), cpu: median(jobs.map(({ cpu }) => cpu)) }
  const fold = { seconds: median(folds.map(({ seconds }) => seconds)), cpu: median(folds.map(({ cpu }) => cpu)) }
  const memory = Math.max(...jobs.map(({ megabytes }) => megabytes))
  return [
    judged(
      `${total} events in ${pages.size} pages, read and folded ${told(fold)}; the whole sync with its requests, files and commit ${told(job)}`,
      fold.cpu,
      bounds.fold,
      ' s CPU',
    ),
    judged(`peak memory of a process that makes this sync ${memory} MB`, memory, bounds.memory, ' MB'),
  ]
}

/** Pages to steps, upon what a snapshot left, without a lake. */
async function foldAlone(text: string, pages: readonly string[]): Promise<Cost & { readonly steps: number }> {
  const snapshot = readSnapshot(Buffer.from(text), resources)
  if (!snapshot.ok) throw new Error(snapshot.reason)
  const { records } = snapshot.value
  const bytes = pages.map((page) => Buffer.from(page))
  let steps = 0
  const cost = await measured(() => {
    const poll = newPoll(heldOf(records))
    for (const page of bytes) {
      const read = readPage(page, resources)
      if (!read.ok) throw new Error(read.reason)
      for (const event of read.value.events) observeEvent(poll, event)
    }
    const texts = (resource: string, id: string): { version: string; latest: string } | undefined => {
      const version = records.get(resource)?.get(id)?.text
      return version === undefined ? undefined : { version, latest: version }
    }
    fold(poll, { resources, texts, keys: new Map() }, () => steps++)
  })
  return { ...cost, steps }
}

function heldOf(records: Records): HeldEntities {
  return new Map(
    [...records].map(([resource, list]) => [
      resource,
      new Map(
        [...list].map(([id, { hash, product, verified }]) => [id, { id, open: true, hash, at: 1, product, verified }]),
      ),
    ]),
  )
}

/** A snapshot a day, 0.2 % of the deployments and their products changed. */
async function dailyChanges(text: string, days = scaled(20)): Promise<Measured> {
  const sizes: Bytes[] = []
  const each = async (_: number, bytes: () => Promise<Bytes>): Promise<void> => void sizes.push(await bytes())
  await daily(JSON.parse(text) as World, days, async () => undefined, each)
  const [first, last] = [sizes[0], sizes.at(-1)]
  if (!first || !last) throw new Error('no snapshot was taken')
  const perDay = (last.tables - first.tables) / days / 1e6
  const raw = (last.raw / (days + 1) / 1e6).toFixed(1)
  const line = `${days} daily snapshots with 0.2 % changes: first ${(first.tables / 1e6).toFixed(1)} MB, raw bodies ${raw} MB a day, tables ${perDay.toFixed(2)} MB a day`
  return judged(line, perDay, bounds.daily, ' MB')
}
