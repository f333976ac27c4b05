import { mkdirSync } from 'node:fs'
import type { Endpoint } from '../../../src/catalog/catalogue.ts'
import { commit, type StagedFile } from '../../../src/lake/ledger/commit.ts'
import { Ledger } from '../../../src/lake/ledger/ledger.ts'
import { type Disk, realDisk } from '../../../src/lake/store/disk.ts'
import { Engine, quote } from '../../../src/lake/store/engine.ts'
import { inLake, pointsFile } from '../../../src/lake/store/layout.ts'
import { commitDeps } from './drafts.ts'
import { catalogue } from '../sandbox-client.ts'
import { makeViews } from '../views.ts'

/** Endpoints of hourly points. */
const hourly = [...catalogue.endpoints.values()].filter(({ intervals }) => intervals.includes('1h'))
/** The start of the first of them. */
export const firstHour = Date.UTC(2015, 0, 1) / 1000
/** Nothing here has to survive a power cut. */
const quick: Disk = { ...realDisk, sync: async () => undefined, syncFolder: async () => undefined }

/** A lake of so many metrics with hourly points of ten assets, each metric in two files of two commits. */
export interface LargeLake {
  readonly root: string
  readonly metrics: readonly string[]
  readonly assets: readonly string[]
}

/** Makes one by COPY into the layout of a lake: points that were fetched would take hours. */
export async function makeLargeLake(root: string, metrics: number, hours: number): Promise<LargeLake> {
  const endpoints = hourly.slice(0, metrics)
  using engine = await Engine.open()
  {
    using ledger = await Ledger.open(root)
    mkdirSync(inLake(root, 'spool/made'), { recursive: true })
    for (const [n, half] of [Math.ceil(hours / 2), Math.floor(hours / 2)].entries())
      await commit(
        ledger,
        async ({ committed_at, version }) => {
          const add: StagedFile[] = []
          for (const one of endpoints) {
            const temporary = `spool/made/${version}-${add.length}.parquet`
            const from = firstHour + n * Math.ceil(hours / 2) * 3600
            await engine.run(`COPY (${pointsSql(one, { from, hours: half, at: committed_at, seed: add.length })})
              TO ${quote(inLake(root, temporary))} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)`)
            add.push(staged(one, temporary, { id: `part-${n}`, rows: 10 * half }))
          }
          return { job: 'fetch', run: `made-${n}`, provider: { synthetic: true }, add }
        },
        commitDeps({ disk: quick }),
      )
  }
  await makeViews(root)
  const assets = Array.from({ length: 10 }, (_, n) => `A${n}`)
  return { root, metrics: endpoints.map(({ path }) => path), assets }
}

function staged({ path }: Endpoint, temporary: string, { id, rows }: { id: string; rows: number }): StagedFile {
  const about = { table: 'points', label: '', interval: '1h', digest: null, meta: {}, min_t: 0, max_t: 0 } as const
  return { temporary, path: pointsFile(path, '1h', id), metric: path, rows, ...about }
}

function pointsSql(
  { defaults }: Endpoint,
  { from, hours, at, seed }: { from: number; hours: number; at: number; seed: number },
): string {
  const text = (value: string | null | undefined) => (value ? quote(value) : 'NULL::VARCHAR')
  const t = `(${from} + (i % ${hours}) * 3600)`
  return `SELECT 'A' || (i // ${hours}) AS asset, ${text(defaults.currency)} AS currency, ${text(defaults.exchange)} AS exchange,
    ${text(defaults.network)} AS network, make_timestamptz(${t} * 1000000) AS t,
    make_timestamptz((${t} + 4200) * 1000000 + i % 977) AS available_at, make_timestamptz(${at}::BIGINT) AS observed_at,
    sin(i + ${seed}) * 1000 AS v, NULL::VARCHAR AS o, 'assumed' AS basis, NULL::VARCHAR AS extra,
    NULL::TIMESTAMPTZ AS computed_at, NULL::TIMESTAMPTZ AS available_rule_at, NULL::VARCHAR AS params
    FROM range(${10 * hours}) r(i)`
}
