import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LakeError } from '../../src/base/errors.ts'
import { Desk } from '../../src/interfaces/server/session-manager.ts'
import { pageBytes, Pages } from '../../src/interfaces/server/result-pages.ts'
import { pastedDeeds, pastedOptions, pastedQuestion } from '../helpers/pasted.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { openTestLake } from '../helpers/lakes/make-lake.ts'
import { type Prey, statementFrom } from '../helpers/sql-grammar.ts'
import { seeded } from '../helpers/random.ts'
import { rounds } from '../helpers/tiers.ts'

/*
 * Clients of one server share an engine: whatever one of them asks, what the next one reads is the same, byte for byte.
 * `PITLAKE_CLIENTS` is how many statements are asked (2000 is a whole run), `PITLAKE_CLIENTS_SEED` draws others.
 */
const wanted = rounds('PITLAKE_CLIENTS', 40, 200)
const seed = Number(process.env['PITLAKE_CLIENTS_SEED'] ?? 20_261_128)

const subjects = [
  'FROM series ORDER BY ALL',
  'SELECT metric, asset, count(*) AS n, sum(v) AS v FROM points GROUP BY ALL ORDER BY ALL',
  'SELECT * FROM points ORDER BY ALL LIMIT 20',
  'FROM coverage ORDER BY ALL',
  'SELECT metric, rule FROM endpoints ORDER BY ALL LIMIT 20',
  'FROM universe ORDER BY ALL',
  'DESCRIBE points',
  'SELECT function_name FROM duckdb_functions() WHERE NOT internal ORDER BY ALL',
  `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-01-02', '2024-05-01', '6 days')) FROM pit_join('d', 'supply/current_pit', '24h') ORDER BY ts`,
  `FROM resample('supply/current_pit', '24h', '1w') ORDER BY ALL`,
]
const instants = ['2024-01-05', '2024-02-02', '2024-03-01', '2024-04-11', undefined]
const honest = subjects.flatMap((sql) =>
  instants.map((asOf) => ({ sql, knowledge: asOf === undefined ? {} : { asOf } })),
)

test(`${honest.length} honest questions have the same bytes after ${wanted} statements of other clients, seed ${seed}`, {
  timeout: 3_600_000,
}, async () => {
  const { root: folder, remove } = await openTestLake(hundredFetchedDays)
  const never = new AbortController().signal
  let names = 0
  const desk = new Desk(
    { folder, memory: 2 ** 31, spill: 2 ** 28, threads: 1, ledgerNow: false, limited: false, allowed: [] },
    {
      sleep: setTimeout,
      draw: () => `name${(names++).toString(16).padStart(8, '0')}`,
      begun: () => undefined,
      note: () => undefined,
    },
  )
  using pages = new Pages(desk, { elapsed: () => 0, draw: () => `page${names++}` })
  const ask = async (question: (typeof honest)[number], gone = never): Promise<string> =>
    JSON.stringify(await pages.first(question, { rows: 50, room: () => pageBytes }, { client: 'a', closed: gone }))
  const all = async (): Promise<readonly string[]> => {
    const answers: string[] = []
    for (const question of honest) answers.push(await ask(question))
    return answers
  }
  try {
    const before = await all()
    const random = seeded(seed)
    const inside = join(folder, 'points', 'made')
    const prey: Prey = { secret: join(folder, '..', 'secret.csv'), outside: join(folder, '..', 'made'), inside }
    let answered = 0
    for (let n = 0; n < wanted; n++) {
      const option = pastedOptions[n % pastedOptions.length] ?? 'currency'
      const deed = pastedDeeds[n % pastedDeeds.length] ?? 'defines'
      const sql =
        n % 10 === 0
          ? pastedQuestion(option, '?decisions', deed, { file: inside, proof: 'pasted-proof' })
          : statementFrom(random, prey)
      // Joins of joins: what takes long has read what there is.
      const gone = AbortSignal.timeout(10_000)
      const told = await ask({ sql, knowledge: { asOf: '2024-03-01' } }, gone).catch((error: unknown) => {
        if (error instanceof LakeError) return undefined
        throw error
      })
      if (told !== undefined) answered++
    }
    expect(await all()).toEqual(before)
    // Both kinds come about, else nothing was tried.
    expect(answered).toBeGreaterThan(wanted / 20)
    expect(answered).toBeLessThan(wanted)
  } finally {
    remove()
  }
})
