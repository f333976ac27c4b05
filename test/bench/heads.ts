import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { CommitDeps } from '../../src/lake/ledger/commit.ts'
import { headNote, headOf } from '../../src/trust/heads/head.ts'
import { nameTry } from '../../src/trust/heads/tries.ts'
import { readKey, secretText } from '../../src/base/merkle/note.ts'
import { pitlake } from '../helpers/command.ts'
import { reading, writing } from '../helpers/ledgers.ts'
import { judged, type Measured, median, scaled } from './measured.ts'
import { runScript } from './programs.ts'
import { benchConfig, root as project, withDailyProvider } from './provider.ts'

/*
 * A lake of 100 series of eight years and 400 versions: what its head costs, and a certificate of a panel over all of it.
 */

const series = scaled(100)
const versions = scaled(400)
const day = 86_400
const deps: CommitDeps = {
  nowMicros: () => Date.now() * 1000,
  sleep: async (ms) => await setTimeout(ms),
  random: Math.random,
  holder: { pid: process.pid, host: 'bench', command: 'bench' },
  program: 'pitlake bench',
}

/** Milliseconds of a head, seconds and bytes of a certificate. */
export async function benchHeads(): Promise<Measured[]> {
  const measured: Measured[] = []
  const home = mkdtempSync(join(tmpdir(), 'pitlake-heads-'))
  const root = join(home, 'lake')
  try {
    await withDailyProvider(async ({ url }) => {
      writeFileSync(join(home, 'pitlake.yaml'), benchConfig())
      const assets = Array.from({ length: series }, (_, n) => `A${n}`).join(',')
      const since = new Date(Date.now() - 8 * 365 * day * 1000).toISOString()
      const chosen = ['--paths', 'addresses/active_count_pit', '--assets', assets, '--since', since]
      const args = ['src/main.ts', 'fetch', '--config', join(home, 'pitlake.yaml'), '--data', root, ...chosen]
      runScript(project, args, { PITLAKE_METRICS_URL: url, PITLAKE_METRICS_KEY: 'key-of-the-bench' })
    })
    await writing(root, async (ledger) => {
      while (ledger.head().version < versions) await nameTry(ledger, `SELECT ${ledger.head().version}`, deps)
    })
    const key = readKey(secretText('bench', Buffer.alloc(32, 7)))
    const heads = await reading(root, (ledger) =>
      Array.from({ length: 15 }, () => {
        const { user, system } = process.cpuUsage()
        headNote(headOf(ledger), key)
        const then = process.cpuUsage({ user, system })
        return (then.user + then.system) / 1000
      }),
    )
    measured.push(judged(`head of ${versions} versions: ${median(heads).toFixed(1)} ms`, median(heads), 50, ' ms'))
    writeFileSync(join(home, 'k.key'), secretText('bench', Buffer.alloc(32, 7)))
    const run = async (...argv: readonly string[]) => await pitlake(home, [...argv, '--data', root])
    await run('views')
    const sql = `SELECT available_at AS ts, asset, v FROM points WHERE metric = 'addresses/active_count_pit'`
    writeFileSync(join(home, 'q.sql'), sql)
    await run('stamp', 'q.sql', '--out', 'q.parquet')
    const times: number[] = []
    let bytes = 0
    for (let n = 0; n < 5; n++) {
      const before = process.cpuUsage()
      const { out, message } = await run('certify', 'q.parquet', '--out', 'c.json', '--key', 'k.key', '--json')
      const { user, system } = process.cpuUsage(before)
      if (message !== '') throw new Error(message)
      const told = JSON.parse(out) as { bytes: number; series: number; verdict: string }
      if (told.series !== series || told.verdict !== 'proved') throw new Error(out)
      bytes = told.bytes
      times.push((user + system) / 1e6)
    }
    const line = `certify a query over ${series} series × 8 years`
    measured.push(judged(`${line}: ${median(times).toFixed(2)} s of processor`, median(times), 2, ' s'))
    measured.push(judged(`${line}: ${Math.round(bytes / 1000)} kB`, bytes / 1000, 200, ' kB'))
    return measured
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
