import type { Engine } from '../store/engine.ts'
import type { Recorded } from '../ledger/lost.ts'
import type { Regained } from '../ledger/entry.ts'
import { hashSql } from './month-sums.ts'
import { bodyAt, type Ordered } from './order.ts'
import { numbered, rowsSql, statement } from './sql.ts'
import { datedSql, stagedDating } from './write.ts'

const goneColumns = 'rank INTEGER, month VARCHAR, since BIGINT, until BIGINT, digest UBIGINT'
const seenColumns = 'rank INTEGER, since BIGINT, until BIGINT, observed BIGINT'
const askedColumns = 'rank INTEGER, since BIGINT, until BIGINT, asked_at BIGINT, observed BIGINT'
const recordedColumns = 'body INTEGER, t BIGINT, valued BOOLEAN, v DOUBLE, o VARCHAR, computed BIGINT, stored_at BIGINT'

type Good = Ordered & { readonly i: number }

/** Tells the session what series of the bodies lost: the tables `gone`, `seen`, `asked` and `recorded`, the view `restored`. */
export async function tellLost(session: Engine, good: readonly Good[]): Promise<void> {
  const byRank = new Map(good.flatMap(({ rank, body }) => (body.lost ? [[rank, body.lost] as const] : [])))
  const gone = [...byRank].flatMap(([rank, { months }]) =>
    months.map(({ digest, ...month }) => ({ rank, ...month, digest: digest && String(BigInt(`0x${digest}`)) })),
  )
  const seen = [...byRank].flatMap(([rank, lost]) => lost.seen.map((one) => ({ rank, ...one })))
  const asked = [...byRank].flatMap(([rank, lost]) => lost.asked.map((one) => ({ rank, ...one })))
  const recorded = good.flatMap(({ i, body: { lost, since, until } }) =>
    (lost?.recorded ?? [])
      .filter(({ t }) => t >= (since ?? -Infinity) && t < (until ?? Infinity))
      .filter(({ t }) => lost?.months.some((month) => t >= month.since && t < month.until))
      .map((one) => ({ body: i, ...recordRow(one) })),
  )
  for (const [table, columns, rows] of [
    ['gone', goneColumns, gone],
    ['seen', seenColumns, seen],
    ['asked', askedColumns, asked],
    ['recorded', recordedColumns, recorded],
  ] as const) {
    await session.run(`CREATE TEMP TABLE ${table} (${columns})`)
    if (rows.length > 0) await session.run(`INSERT INTO ${table} ${rowsSql(columns, rows)}`)
  }
  await session.run(statement('restored'))
}

function recordRow({ t, value, computed, stored_at }: Recorded): object {
  const nested = value !== null && /^[{[]/.test(value)
  const number = value === null || nested || value === 'null' ? null : value
  return {
    t,
    valued: value !== null,
    v: number,
    o: nested ? value : null,
    computed: computed === null ? null : Math.round(Number(computed) * 1e6),
    stored_at,
  }
}

/** What came again of which month, and whether it is what was lost: makes the table `regained`, and adds it to `late`. */
export async function regain(session: Engine, ordered: readonly Ordered[], now: bigint): Promise<Regained[]> {
  const was = `coalesce(r.stored_at, s.observed, ${now}::BIGINT)`
  const source = `(SELECT f.*, g.month, g.digest, r.stored_at AS kept, ${was} AS was,
      f.computed IS NULL AND EXISTS (FROM asked a WHERE a.rank = f.rank AND f.t >= a.since AND f.t < a.until
        AND a.asked_at > f.ruled AND a.observed < ${was}) AS tardy
    FROM fresh f JOIN gone g ON f.rank = g.rank AND f.t >= g.since AND f.t < g.until
      LEFT JOIN seen s ON f.rank = s.rank AND f.t >= s.since AND f.t < s.until
      LEFT JOIN recorded r ON r.body = f.body AND r.t = f.t)`
  const hash = hashSql({
    t: 't * 1000000',
    available: 'available',
    observed: 'seen',
    basis: 'dated_by',
    computed: 'told_at',
    rule: 'stands_in',
  })
  const how = { source, place: 'rank', seen: 'was', late: 'tardy', again: 'false' }
  const dated = datedSql(stagedDating(ordered), how)
  await session.run(statement('regained', { dated, hash, modulus: '18446744073709551616::HUGEINT' }))
  await session.run('DELETE FROM late WHERE (body, t) IN (SELECT (body, t) FROM regained)')
  await session.run('INSERT INTO late SELECT body, t, tardy, stood, again FROM regained')
  const rows = await numbered<{ body: number; month: string; points: number; proven: boolean }>(
    session,
    'SELECT min(body) AS body, month, count(*) AS points, bool_and(proven) AS proven FROM regained GROUP BY rank, month ORDER BY 1, 2',
  )
  return rows.map(({ body, ...rest }) => ({ series: bodyAt(ordered, body).body.series.id, ...rest }))
}
