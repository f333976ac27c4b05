import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { mostMemory } from './memory.ts'
import { judged, type Measured, median, scaled } from './measured.ts'
import { root } from './provider.ts'

/** Days of the lake: 111 metrics of ten assets. */
const days = scaled(365)
const together = 200
/** All queries together may take two gigabytes; what the program itself takes comes beside that. */
const bounds = { together: 15, megabytes: 2500, beside: 6 }
const metrics = [
  'supply/current_pit',
  'indicators/sopr_adjusted_pit',
  'market/btc_dominance_pit',
  'addresses/loss_count_pit',
]

const questionOf = (n: number): string =>
  `SELECT asset, CAST(count(*) AS INTEGER) AS n, max(v) AS top, CAST(max(t) AS VARCHAR) AS last FROM points
   WHERE metric = ${quote(metrics[n % metrics.length] ?? '')} GROUP BY asset ORDER BY asset`

/** `pitlake serve`: many at once against one after the other in DuckDB, its memory, and what a commit beside it costs. */
export async function benchServe(): Promise<Measured[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pitlake-serve-'))
  const lake = join(folder, 'lake')
  const usage = join(folder, 'usage.json')
  await script(['test/python/pitlake/wide-lake.ts', lake, String(days)])
  const listening = ['src/main.ts', 'serve', '--data', lake, '--listen', '127.0.0.1:0']
  const server = spawn(process.execPath, ['--import', join(root, 'test/bench/usage.ts'), ...listening], {
    cwd: root,
    env: { ...process.env, PITLAKE_BENCH_USAGE: usage },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  try {
    const url = await addressOf(server)
    const many = await manyAtOnce(lake, url)
    const beside = await besideCommits(lake, url)
    // The process of the answers is killed at the end, so it is asked before.
    const kept = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8').trim()
    const answers = mostMemory(kept)
    server.kill('SIGTERM')
    await once(server, 'exit')
    const { megabytes } = JSON.parse(readFileSync(usage, 'utf8')) as { megabytes: number }
    const line = `its memory through all that: ${answers} MB for the answers, ${megabytes} MB beside`
    return [many, judged(line, answers + megabytes, bounds.megabytes, ' MB'), beside]
  } finally {
    if (server.exitCode === null) server.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Where a server says that it listens. */
export async function addressOf(server: ChildProcess): Promise<string> {
  let said = ''
  for await (const part of server.stderr ?? []) {
    said += String(part)
    const [url] = /http:\/\/[\d.:]+/.exec(said) ?? []
    if (url !== undefined) return url
  }
  throw new Error(`pitlake serve: ${said}`)
}

async function script(args: readonly string[]): Promise<void> {
  const done = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = (await once(done, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`)
}

async function ask(url: string, sql: string) {
  const answer = await fetch(`${url}/query`, { method: 'POST', body: sql })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`)
  const rows = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
  return { version: Number(answer.headers.get('pitlake-version')), rows }
}

async function manyAtOnce(lake: string, url: string): Promise<Measured> {
  const [ours, theirs]: [number[], number[]] = [[], []]
  for (let round = 0; round < scaled(5); round++) {
    const begun = performance.now()
    const answers = await Promise.all(Array.from({ length: together }, async (_, n) => ask(url, questionOf(n))))
    ours.push((performance.now() - begun) / 1000)
    using engine = await Engine.open(':memory:', { threads: 2 })
    await engine.run(
      `ATTACH ${quote(inLake(lake, places.database))} AS lake (READ_ONLY); USE lake; SET TimeZone = 'UTC'`,
    )
    const start = performance.now()
    for (const [n, { rows }] of answers.entries()) {
      const right = await engine.rows(questionOf(n))
      if (JSON.stringify(rows) !== JSON.stringify(right))
        throw new Error(`answer ${n} differs: ${JSON.stringify(rows)}`)
    }
    theirs.push((performance.now() - start) / 1000)
  }
  const [served, bare] = [median(ours), median(theirs)]
  const line = `${together} queries at once ${served.toFixed(2)} s, in one session of DuckDB ${bare.toFixed(2)} s: ratio ${(served / bare).toFixed(2)}`
  return judged(line, served / bare, bounds.together)
}

/** Seconds of queries one after the other while `busy`; each sees one whole version. */
async function latencies(url: string, busy: () => boolean): Promise<number[]> {
  const taken: number[] = []
  while (busy()) {
    const begun = performance.now()
    const { version, rows } = await ask(url, questionOf(0))
    taken.push((performance.now() - begun) / 1000)
    const told = new Set((rows as { n: number }[]).map(({ n }) => n))
    if (rows.length !== 10 || told.size !== 1 || !told.has(days + version - 1))
      throw new Error(`version ${version} tells ${[...told].join()} days`)
  }
  return taken
}

async function besideCommits(lake: string, url: string): Promise<Measured> {
  let left = 50
  const alone = median(await latencies(url, () => left-- > 0))
  let busy = true
  const commits = (async () => {
    try {
      for (let day = 0; day < 3; day++)
        await script(['test/python/pitlake/wide-lake.ts', lake, '1', String(days + day)])
    } finally {
      busy = false
    }
  })()
  const beside = await latencies(url, () => busy)
  await commits
  const slowest = Math.max(...beside)
  const line = `a query beside commits ${median(beside).toFixed(3)} s (slowest of ${beside.length}: ${slowest.toFixed(3)}), alone ${alone.toFixed(3)} s: ratio ${(median(beside) / alone).toFixed(2)}`
  return judged(line, median(beside) / alone, bounds.beside)
}
