import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Engine, quote } from '../../src/lake/engine.ts'
import { liveFiles } from '../../src/lake/held.ts'
import { inLake } from '../../src/lake/layout.ts'
import { Ledger } from '../../src/lake/ledger.ts'
import { createSandbox } from '../../src/sandbox/sandbox.ts'
import { registryKey, withRegistryBench } from '../helpers/registry-bench.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const start = Date.UTC(2026, 9, 15, 12) / 1000
const day = 86_400
type Fields = Record<string, unknown>
type Body = Record<string, Fields[]> & { cursor: unknown }

/** Full size: snapshot against bare read_json -> COPY, 100,000 events, days with 0.2 % changes, peak memory. */
export async function benchRegistry(days = 20): Promise<string[]> {
  const text = await fullBody()
  const lines = [await snapshotAgainstBare(text)]
  lines.push(await manyEvents(text))
  lines.push(await dailyChanges(text, days))
  lines.push(
    `registry: peak memory of this process ${Math.round(process.resourceUsage().maxRSS / 1024)} MB, the provider in it`,
  )
  return lines
}

/** A snapshot of the full-size sandbox. */
async function fullBody(): Promise<string> {
  const sandbox = createSandbox({
    catalogue,
    seed: 1,
    now: () => start,
    sleep: async () => undefined,
    scale: 'full',
    metricsKey: 'm',
    registryKey,
  })
  const request = new Request('http://localhost/registry/v1/snapshot', {
    headers: { authorization: `Bearer ${registryKey}` },
  })
  return await (await sandbox.handle(request)).text()
}

async function measured<T>(work: () => Promise<T>): Promise<{ value: T; seconds: number; cpu: number }> {
  const [at, before] = [performance.now(), process.cpuUsage()]
  const value = await work()
  const { user, system } = process.cpuUsage(before)
  return { value, seconds: (performance.now() - at) / 1000, cpu: (user + system) / 1e6 }
}

async function snapshotAgainstBare(text: string): Promise<string> {
  let ours = { seconds: 0, cpu: 0 }
  const instead = (): Response => new Response(text)
  await withRegistryBench(
    start,
    async (bench) => {
      ours = await measured(async () => await bench.snapshot())
    },
    { instead },
  )
  const bare = await measured(async () => await bareCopy(text))
  const ratio = (ours.seconds / bare.seconds).toFixed(2)
  const cpu = (ours.cpu / bare.cpu).toFixed(2)
  return `registry: snapshot body of ${(text.length / 1e6).toFixed(1)} MB -> committed tables ${ours.seconds.toFixed(2)} s (${ours.cpu.toFixed(2)} s CPU), bare read_json -> COPY ${bare.seconds.toFixed(2)} s (${bare.cpu.toFixed(2)} s CPU), ratio ${ratio}, by CPU ${cpu} (bound 3)`
}

async function bareCopy(text: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-bare-'))
  const engine = await Engine.open(':memory:', { threads: 2 })
  try {
    const body = join(folder, 'body.json')
    writeFileSync(body, text)
    const read = `read_json(${quote(body)}, maximum_object_size = 200000000)`
    await engine.run(
      `COPY (SELECT * FROM ${read}) TO ${quote(join(folder, 'bare.parquet'))} (FORMAT parquet, COMPRESSION zstd)`,
    )
  } finally {
    engine.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A feed of 100,000 events over the deployments, in pages of 500. */
async function manyEvents(text: string): Promise<string> {
  const body = JSON.parse(text) as Body
  const deployments = body['deployments'] ?? []
  const total = 100_000
  const page = (from: number): string => {
    const data = Array.from({ length: 500 }, (_, i) => {
      const n = from + i
      const record = { ...deployments[n % deployments.length], revision: Math.floor(n / deployments.length) + 1 }
      return { entity_type: 'deployment', entity_id: (record as Fields)['id'], op: 'updated', record }
    })
    return JSON.stringify({ data, next_cursor: String(from + 500), has_more: from + 500 < total })
  }
  const pages = Array.from({ length: total / 500 }, (_, i) => page(i * 500))
  const first = text.replace(/"cursor":"[^"]*"/, '"cursor":"0"')
  let result = { seconds: 0, cpu: 0, updated: 0 }
  const instead = (request: Request): Response => {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname.endsWith('/snapshot')) return new Response(first)
    return new Response(pages[Number(searchParams.get('since')) / 500] ?? '{"data":[],"has_more":false}')
  }
  await withRegistryBench(
    start,
    async (bench) => {
      await bench.snapshot()
      const { value, seconds, cpu } = await measured(async () => await bench.sync())
      if (value.events !== total) throw new Error(`${value.events} events instead of ${total}`)
      result = { seconds, cpu, updated: value.updated }
    },
    { instead },
  )
  return `registry: sync of ${total} events in ${pages.length} pages ${result.seconds.toFixed(2)} s, ${result.cpu.toFixed(2)} s CPU with the provider (bound 5 s CPU), ${result.updated} versions`
}

/** A snapshot a day, 0.2 % of the deployments and their products changed. */
async function dailyChanges(text: string, days: number): Promise<string> {
  const body = JSON.parse(text) as Body
  let current = text
  let added = 0
  let first = 0
  let raw = 0
  await withRegistryBench(
    start,
    async (bench) => {
      for (let n = 0; n <= days; n++) {
        if (n > 0) current = changed(body, n)
        await bench.snapshot()
        bench.clock.now += day
        const bytes = await bytesOf(bench.root)
        if (n === 0) first = bytes.tables
        added = bytes.tables - first
        raw = bytes.raw
      }
    },
    { instead: () => new Response(current) },
  )
  const perDay = (added / days / 1e6).toFixed(2)
  return `registry: ${days} daily snapshots with 0.2 % changes: first ${(first / 1e6).toFixed(1)} MB, then ${perDay} MB of tables a day (bound 3), raw bodies ${(raw / (days + 1) / 1e6).toFixed(1)} MB a day`
}

function changed(body: Body, n: number): string {
  const deployments = body['deployments'] ?? []
  const products = new Map((body['products'] ?? []).map((product) => [product['id'], product]))
  const every = 500
  for (let i = (n * 37) % every; i < deployments.length; i += every) {
    const row = deployments[i] as Fields
    row['status'] = `state ${n}`
    const held = products.get(row['product_id'])?.['deployments'] as Fields[] | undefined
    const twin = held?.find((one) => one['id'] === row['id'])
    if (twin) twin['status'] = `state ${n}`
  }
  return JSON.stringify(body)
}

async function bytesOf(root: string): Promise<{ tables: number; raw: number }> {
  const ledger = await Ledger.openToRead(root)
  try {
    const sizes = new Map(liveFiles(ledger).map((file) => [file.path, file.table]))
    let [tables, raw] = [0, 0]
    for (const [path, table] of sizes) {
      const { size } = statSync(inLake(root, path))
      if (table === 'raw') raw += size
      else tables += size
    }
    return { tables, raw }
  } finally {
    ledger.close()
  }
}
