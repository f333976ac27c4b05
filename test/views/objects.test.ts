import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clockFindingKinds } from '../../src/lake/ledger/entry.ts'
import { coverageRow, seriesRow, violationRow } from '../helpers/lakes/drafts.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews, multiset, ways, withViews } from '../helpers/views.ts'
import { makeFolder } from '../helpers/folders.ts'

const six = ['metric', 'asset', 'interval', 'currency', 'exchange', 'network']
const points = [...six, 't', 'available_at', 'observed_at', 'v', 'o', 'basis', 'extra', 'computed_at']

const words = (text: string): string[] => text.split(' ')

/** Names and order are part of the contract; new columns go to the end. */
const columns: Readonly<Record<string, readonly string[]>> = {
  lake_info: ['lake', 'version', 'committed_at', 'provider', 'synthetic', 'folder', 'state'],
  points,
  components: [...six, 't', 'available_at', 'observed_at', 'component', 'v', 'basis'],
  series: [...six, 'first_t', 'last_t', 'points', 'gaps', 'last_available_at'],
  price_usd: points,
  vintages: [
    ...six,
    't',
    'ordinal',
    'available_at',
    'observed_at',
    'v',
    'o',
    'previous',
    'previous_available_at',
    'basis',
  ],
  endpoints: [
    ...words('metric about intervals currencies exchanges networks since until format timestamp_format rule'),
    ...words('lag_seconds basis quote reason default_interval default_currency default_exchange'),
    ...words('default_network tolerance_seconds overlap params placeholders rules revisable source'),
  ],
  links: [
    ...words('metric_asset product_id basis ambiguous valid_from valid_to symbol chain_id address assumed'),
    ...words('predecessor predecessor_at predecessor_change successor successor_at successor_change'),
  ],
  metric_assets: ['id', 'symbol', 'addresses', 'record', 'first_seen', 'changed_at', 'assumed'],
  coverage: [...six, 'since', 'until', 'state', 'reason', 'asked_at', 'verified_at'],
  gaps: [...six, 'since', 'until', 'missing', 'asked_at', 'state', 'reason'],
  violations: [
    ...six,
    ...words('t kind stored offered stored_at offered_at request acknowledged_at why reverted_at status incident'),
    ...words('until points'),
  ],
  clock_findings: [...six, 't', 'kind', 'detail', 'found_at'],
  requests: [
    ...words('id run api path query series since until status outcome points bytes credits attempts asked_at'),
    ...words('seconds detail provider_date'),
  ],
  runs: ['id', 'job', 'command', 'started_at', 'ended_at', 'stopped_by', 'exit_code', 'plan', 'actual'],
  versions: [
    ...words('version committed_at job run program metrics_provider registry_provider synthetic files_added'),
    ...words('files_removed files_dropped points_added digest'),
  ],
}

let root = ''

beforeAll(async () => {
  root = join(makeFolder('views'), "it's a [1] lake*")
  const day = (n: number): string => `2024-03-${String(n).padStart(2, '0')}`
  const series = seriesRow(1)
  await makeLake(root, [
    {
      at: '2024-04-01',
      points: [1, 2, 4].map((n) => ({
        metric: 'm/x',
        asset: 'BTC',
        interval: '24h',
        t: day(n),
        available_at: `${day(n + 1)}T00:10:00Z`,
        v: n,
      })),
      tables: { metric_assets: [{ id: 'BTC', symbol: 'BTC', addresses: null, record: '{"id":"BTC"}' }] },
      series: [series],
      coverage: [coverageRow(1, 0, 864_000, { reason: 'gap' })],
      violations: [violationRow(1, 0, { kind: 'value' })],
      findings: [{ series: series.id, t: 0, kind: 'before_end', detail: { a: 1 }, at: 1 }],
    },
  ])
  await makeViews(root)
}, 300_000)

afterAll(() => rmSync(join(root, '..'), { recursive: true, force: true }))

describe.each(ways)('by %s', (way) => {
  test('every object has its columns in their order', async () => {
    const seen = await withViews(
      root,
      async (engine, prefix) => {
        const found: Record<string, unknown> = {}
        for (const name of Object.keys(columns))
          found[name] = (await engine.rows(`DESCRIBE SELECT * FROM ${prefix}${name}`)).map((row) => row['column_name'])
        return found
      },
      way,
    )
    expect(seen).toEqual(columns)
  })

  test('TIME 28: every view can be read, in every session time zone alike', async () => {
    await withViews(
      root,
      async (engine, prefix) => {
        const read = async (): Promise<Record<string, string[]>> => {
          const rows: Record<string, string[]> = {}
          for (const name of Object.keys(columns)) rows[name] = multiset(await engine.rows(`FROM ${prefix}${name}`))
          return rows
        }
        await engine.run(`SET VARIABLE as_of = '2024-03-04 12:00'`)
        const utc = await read()
        expect(utc['points']).toHaveLength(2)
        expect(utc['coverage']).toHaveLength(1)
        for (const zone of ['America/New_York', 'Asia/Kolkata', 'Pacific/Kiritimati']) {
          await engine.run(`SET TimeZone = '${zone}'`)
          expect(await read()).toEqual(utc)
        }
      },
      way,
    )
  })
})

test('every object and every column has a comment', async () => {
  const silent = await withViews(root, async (engine) => [
    ...(await engine.rows(`SELECT view_name AS name FROM duckdb_views() WHERE NOT internal AND comment IS NULL`)),
    ...(await engine.rows(
      `SELECT c.table_name || '.' || c.column_name AS name FROM duckdb_columns() c WHERE NOT c.internal AND c.comment IS NULL`,
    )),
    ...(await engine.rows(
      `SELECT function_name AS name FROM duckdb_functions()
       WHERE NOT internal AND function_type IN ('macro', 'table_macro') AND comment IS NULL`,
    )),
  ])
  expect(silent).toEqual([])
})

test('a table of the session that bears the name of a view changes no other view', async () => {
  await withViews(root, async (engine) => {
    for (const name of ['points', 'coverage', 'components', 'price_usd', 'metric_assets'])
      await engine.run(`CREATE TEMP TABLE ${name} AS SELECT 1 AS mine`)
    expect(await engine.rows('SELECT points, gaps FROM series')).toEqual([{ points: 3n, gaps: 1n }])
    expect(await engine.rows('SELECT missing FROM gaps')).toEqual([{ missing: 10n }])
  })
})

/** Sections of the page of the views, by the name of their view. */
function viewSections(): ReadonlyMap<string, string> {
  const page = readFileSync(new URL('../../docs/reference/views.md', import.meta.url), 'utf8')
  return new Map(page.split('\n### `').map((text) => [text.slice(0, text.indexOf('`')), text]))
}

test('the comment of a column in the database reads as on the page of the views', async () => {
  const sections = viewSections()
  const rows = await withViews(root, (engine) =>
    engine.rows<{ view: string; name: string; comment: string }>(`SELECT
      CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || table_name AS view, column_name AS name, comment
      FROM duckdb_columns() WHERE NOT internal`),
  )
  const meaningOf = (view: string, name: string): string | undefined =>
    new RegExp(`^\\| \`${name}\` \\| [^|]* \\| (.*) \\|$`, 'm').exec(sections.get(view) ?? '')?.[1]?.replaceAll('`', '')
  const different = rows.filter(({ view, name, comment }) => meaningOf(view, name) !== comment)
  expect(rows.length).toBeGreaterThan(200)
  expect(different.map(({ view, name, comment }) => `${view}.${name}: ${comment}`)).toEqual([])
})

test('comments of views, columns and macros use no word that the glossary has replaced', async () => {
  const rows = await withViews(root, (engine) =>
    engine.rows<{ name: string; comment: string }>(`
      SELECT view_name AS name, comment FROM duckdb_views() WHERE NOT internal
      UNION ALL SELECT table_name || '.' || column_name, comment FROM duckdb_columns() WHERE NOT internal
      UNION ALL SELECT DISTINCT function_name, comment FROM duckdb_functions()
        WHERE NOT internal AND function_type IN ('macro', 'table_macro')`),
  )
  const replaced =
    /\b(instants?|settled|unsettled|awaited|held|holds|told|tells|brought|door|doors|stitched|asked it|own data|nobody)\b/
  expect(
    rows.filter(({ comment }) => replaced.test(comment)).map(({ name, comment }) => `${name}: ${comment}`),
  ).toEqual([])
})

test('the comment of clock_findings.kind explains every kind that the ledger accepts, and no other', async () => {
  const [row] = await withViews(root, (engine) =>
    engine.rows<{ comment: string }>(`SELECT comment FROM duckdb_columns()
      WHERE table_name = 'clock_findings' AND column_name = 'kind' AND NOT internal`),
  )
  expect([...(row?.comment ?? '').matchAll(/(\w+):/g)].map(([, kind]) => kind)).toEqual([...clockFindingKinds])
})

test('the page of the views names every view and every column', async () => {
  const sections = viewSections()
  const rows = await withViews(root, (engine) =>
    engine.rows<{
      view: string
      column_name: string
    }>(`SELECT CASE WHEN schema_name = 'main' THEN '' ELSE schema_name || '.' END || table_name AS view, column_name
      FROM duckdb_columns() WHERE NOT internal`),
  )
  const missing = rows.filter(({ view, column_name }) => !sections.get(view)?.includes(`| \`${column_name}\` |`))
  expect(rows.length).toBeGreaterThan(200)
  expect(missing).toEqual([])
})
