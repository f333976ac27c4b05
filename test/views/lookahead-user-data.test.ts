import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Lake, lookahead, type Rows } from '../../src/index.ts'
import { proveQuery } from '../../src/interfaces/commands/lookahead.ts'
import { type LookaheadProof, proveNoLookahead } from '../../src/trust/lookahead/lookahead.ts'
import { bringUserFiles, type OwnFile } from '../../src/trust/lookahead/own-files.ts'
import { openWorlds } from '../../src/trust/lookahead/world.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'

/*
 * User data in a query: rows with available_at in any spelling are known from then on, all others are given. Each
 * planted leak has an honest twin beside it, which the plan proves.
 */

const lake = lakeOfFile(lateDaysAndProducts)

const days = Array.from({ length: 40 }, (_, n) => new Date(Date.UTC(2024, 2, 1 + n)).toISOString().slice(0, 10))

/** Scores that arrive at six in the morning of their day, under a header of the caller's; decisions at seven, given. */
function filesWith(header: string): readonly OwnFile[] {
  const folder = dirname(lake.root)
  const put = (name: string, lines: readonly string[]): string => {
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`)
    return join(folder, name)
  }
  const decided = put('decided.csv', ['Asset,Ts', ...days.map((day) => `BTC,${day}T07:00:00Z`)])
  const scored = days.map((day, n) => `BTC,${day},${day}T06:00:00Z,${(n * 37) % 11}`)
  return [
    ['Decided', decided],
    ['scores', put('scores.csv', [`asset,day,${header},score`, ...scored])],
  ]
}

const trial = { ts: 'ts', labels: [], cutoffs: 8, control: 3, tolerance: 0 }

async function prove(sql: string, header = 'available_at', ts = 'ts'): Promise<LookaheadProof> {
  const open = async (threads: number | undefined) => {
    const session = await openWorlds(lake.root, { threads })
    await bringUserFiles(session, filesWith(header))
    return session
  }
  return await proveNoLookahead(open, { sql, ...trial, ts }, { folder: lake.root, sleep: setTimeout })
}

const onDay = 'FROM decided AS d LEFT JOIN scores AS s ON s.asset = d.asset AND s.day = CAST(d.ts AS DATE) + 1'
const known = 'FROM decided AS d ASOF LEFT JOIN scores AS s ON s.asset = d.asset AND s.available_at <= d.ts'

test.for(['available_at', 'Available_At', 'AVAILABLE_AT', '"available_At"'])(
  'rows of a user under the header %s are cut by it: a join on their day is a leak, one on what was known is proved',
  async (header) => {
    const early = await prove(`SELECT d.ts, s.score ${onDay}`, header)
    expect(early).toMatchObject({ verdict: 'leak', depends_on: ['own scores'], proved: false })
    const then = await prove(`SELECT d.ts, s.score ${known}`, header)
    expect(then).toMatchObject({ verdict: 'clean', proved: true, unproved: null })
    expect(then.chain.join('\n')).toMatch(/scores: a row is known at its available_at/i)
  },
)

const twins: readonly (readonly [leak: string, honest: string])[] = [
  [
    `SELECT TS, (SELECT max(score) FROM Scores) AS v FROM Decided`,
    `SELECT TS, (SELECT max(score) FROM Scores AS s WHERE s.Available_At <= d.TS) AS v FROM Decided AS d`,
  ],
  [
    `SELECT ts, EXISTS (FROM scores s WHERE s.day > CAST(d.ts AS DATE)) AS v FROM decided AS d`,
    `SELECT ts, EXISTS (FROM scores s WHERE s.day > CAST(d.ts AS DATE) AND s.available_at <= d.ts) AS v FROM decided AS d`,
  ],
  [
    `SELECT available_at AS ts, lead(score) OVER (ORDER BY available_at) AS v FROM scores`,
    `SELECT available_at AS ts, lag(score) OVER (ORDER BY available_at) AS v FROM scores`,
  ],
  [`SELECT CAST(day AS TIMESTAMPTZ) AS ts, score FROM scores`, `SELECT available_at AS ts, score FROM scores`],
  [
    `SELECT d.ts, j.v + s.score AS v FROM pit_join('decided', '${lateMetric}', '24h') AS j JOIN decided AS d ON d.ts = j.ts
       JOIN scores AS s ON s.day = CAST(d.ts AS DATE) + 1`,
    `SELECT d.ts, j.v + s.score AS v FROM pit_join('decided', '${lateMetric}', '24h') AS j JOIN decided AS d ON d.ts = j.ts
       JOIN scores AS s ON s.available_at <= d.ts`,
  ],
  [
    `SELECT d.ts, p.v FROM decided AS d JOIN points AS p ON p.t = date_trunc('day', d.ts) AND p.asset = d.asset`,
    `SELECT d.ts, p.v FROM decided AS d JOIN points AS p ON p.available_at <= d.ts AND p.asset = d.asset`,
  ],
]

test.for(twins)('a leak over user data is found, its honest twin is proved: %s', async ([leak, honest]) => {
  expect(await prove(leak, 'AVAILABLE_AT', 'TS')).toMatchObject({ verdict: 'leak', proved: false })
  expect(await prove(honest, 'AVAILABLE_AT', 'TS')).toMatchObject({ verdict: 'clean', proved: true })
})

test('a clock that is text is not proved, and a name that the lake or a proof uses is refused', async () => {
  const folder = dirname(lake.root)
  writeFileSync(join(folder, 'text.csv'), `available_at,score\nlate ,1\n`)
  const run = { folder: lake.root, sleep: setTimeout }
  for (const name of ['points', 'PRODUCTS', 'pit_join', 'Calendar', 'proof_points', 'own_file_x']) {
    const refusal = `--own: expected a name that the lake does not use, got ${name}`
    for (const given of [join(folder, 'text.csv'), [{ score: 1 }]])
      await expect(
        lookahead(() => [], lake.root, { own: { scores: [], [name]: given } }),
        name,
      ).rejects.toThrow(refusal)
    await expect(
      proveQuery({ text: 'SELECT ts, 1 AS v FROM decided', set: {} }, trial, run, [[name, join(folder, 'text.csv')]]),
      name,
    ).rejects.toThrow(refusal)
  }
  const sql = `SELECT d.ts, s.score FROM decided AS d JOIN scores AS s ON s.available_at = CAST(d.ts AS VARCHAR)`
  const whole = await prove(sql.replace('scores', 'own_file_scores'))
  expect(whole).toMatchObject({ verdict: 'undecided', reason: expect.stringContaining('own_file_scores') })
})

test.for(['available_at', 'Available_At'])('rows given to a function are cut by %s', async (name) => {
  const scores = days.map((day, n) => ({ [name]: new Date(`${day}T06:00:00Z`), day, score: (n * 37) % 11 }))
  const decided = days.slice(0, 30).map((day) => ({ TS: `${day}T07:00:00Z` }))
  const asked = async (on: string): Promise<string> => {
    const work = async (own: Lake): Promise<Rows> =>
      await own.sql(`SELECT d.TS, s.score FROM decided AS d LEFT JOIN scores AS s ON ${on}`)
    const options = { cutoffs: 4, own: { decided, scores } }
    return (await lookahead(work, lake.root, options)).verdict
  }
  expect(await asked(`s.day = CAST(CAST(d.TS AS DATE) + 1 AS VARCHAR)`)).toBe('leak')
  expect(await asked(`s.day = CAST(CAST(d.TS AS DATE) AS VARCHAR)`)).toBe('clean')
})
