import type { Given, Question } from './question.ts'

const supply = 'supply/current_pit'
const objects = 'indicators/cvdd_pit'
const joined = (rest: string): string =>
  `WITH d AS (SELECT 'BTC' AS asset, TIMESTAMPTZ '2024-03-04' AS ts)\nSELECT v FROM pit_join('d', ${rest})`
const grid = { calendar: { since: '2024-03-03', until: '2024-03-05', step: '1d' }, assets: ['BTC', 'ETH'] }
const decisions = [{ asset: 'BTC', ts: '2024-03-04T00:30:00Z' }]
const asked = { decisions, metrics: { v: supply } }
const over = (days: readonly [string, string], universe: string): Given => ({
  calendar: { since: days[0], until: days[1], step: '1d' },
  universe,
  metrics: { v: supply },
})
const march = ['2024-03-03', '2024-03-05'] as const

const instant = 'an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC'
const grids = 'SINCE,UNTIL,STEP such as 2024-01-01,2025-01-01,1d'
const readOnly = 'the lake is read-only; CREATE TEMP TABLE is allowed'
const ownFiles =
  'a session reads the lake alone; `panel --decisions FILE` brings a table along, `--out` writes a result'
const onlyReads = (got: string, next = readOnly): string => `SQL: expected a query that only reads, got ${got}; ${next}`
const unknown = 'unknown metric supply/curent_pit; did you mean `supply/current_pit` or `supply/current_adjusted_pit`?'

const sql = (text: string, refused: string, knowledge: Given = {}): Question => ({
  ask: { sql: text },
  knowledge,
  refused,
})
const at = (knowledge: Given, refused: string): Question => sql('SELECT 1 AS a', refused, knowledge)
const panel = (given: Given, refused: string, knowledge: Given = {}): Question => ({
  ask: { panel: given },
  knowledge,
  refused,
})
const beside = (given: Given, refused: string): Question => panel({ ...asked, ...given }, refused)

/** Questions in SQL that are refused. */
export const sqlRefused: Readonly<Record<string, Question>> = {
  'a column of no name': sql(
    'SELECT nope FROM price_usd',
    'SQL (line 1 column 8): Referenced column "nope" not found in FROM clause! Candidate bindings: "o", "computed_at", "network", "interval", "observed_at"',
  ),
  'a table of no name': sql(
    'SELECT *\n  FROM pionts',
    'SQL (line 2 column 8): Table with name pionts does not exist! Did you mean "points"?',
  ),
  'no SQL': sql('SELEC 1', 'SQL (line 1 column 1): syntax error at or near "SELEC"'),
  'no statement': sql('/* nothing */', 'SQL: expected a statement, got nothing'),
  'a metric of no name': sql(joined("'supply/curent_pit', '24h'"), `SQL (line 2 column 15): ${unknown}`),
  'an interval that a metric does not have': sql(
    joined(`'${objects}', '10m'`),
    `SQL (line 2 column 15): ${objects} has no interval 10m: expected 24h`,
  ),
  'an interval of no name': sql(
    `FROM resample('${supply}', '24h', '1mo', 'last')`,
    'SQL: expected an interval (10m, 1h, 24h, 1w, 1month), got 1mo; did you mean `1month`?',
  ),
  'a currency of no name': sql(
    joined(`'${supply}', '24h', currency := 'usdd'`),
    `SQL (line 2 column 15): ${supply} has no currency usdd: expected native, usd; did you mean \`usd\`?`,
  ),
  'an option with =': sql(
    joined(`'${supply}', '24h', currency = 'usd'`),
    'SQL: pit_join: expected currency := …, got currency = …; an option is named with :=',
  ),
  'a time without a unit': sql(
    joined(`'${supply}', '24h', latency := 15`),
    "SQL: expected a time such as '15 minutes', '1 hour', '1 day' or '1 month', got '15'",
  ),
  'COPY in a WITH': sql(
    "WITH x AS (COPY points TO 'points.csv') SELECT 1 AS a",
    onlyReads('a statement that writes, in a WITH'),
  ),
  'INSERT in a WITH': sql(
    'WITH x AS (INSERT INTO points SELECT 1) SELECT 1 AS a',
    onlyReads('a statement that writes, in a WITH'),
  ),
  'a table that is made': sql('CREATE TABLE mine AS SELECT 1 AS a', onlyReads('CREATE')),
  'what writes a file': sql(
    "COPY points TO 'points.csv'",
    onlyReads('COPY', 'write a result with `--out FILE`, in a session with `.out FILE`'),
  ),
  'a setting': sql(
    'SET threads = 1',
    'SQL: expected SET VARIABLE only, got SET; the settings of a session are fixed, its zone is UTC',
  ),
  'another database': sql("ATTACH 'other.duckdb'", onlyReads('ATTACH')),
  'a file': sql(
    "FROM '/etc/decisions.csv'",
    `SQL: expected files of the lake, got Cannot access file "/etc/decisions.csv"; ${ownFiles}`,
  ),
  'a function that reads files': sql(
    "FROM read_csv('/etc/hosts')",
    `SQL: expected files of the lake, got Cannot access file "/etc/hosts"; ${ownFiles}`,
  ),
  'an as_of that is none': at({ as_of: 'never' }, `{option as_of}: expected ${instant}, got "never"`),
  'an as_of in seconds': at({ as_of: '1709510400' }, `{option as_of}: expected ${instant}, got "1709510400"`),
  'an observed_as_of that is no day': at(
    { observed_as_of: '2024-02-30' },
    `{option observed_as_of}: expected ${instant}, got "2024-02-30"`,
  ),
  'a backfill that is none': at(
    { backfill: 'rules' },
    '{option backfill}: expected rule, strict, got "rules"; did you mean `rule`?',
  ),
  'a switch that is none': at(
    { registry_backfill: 'maybe' },
    '{option registry_backfill}: expected true or false, got "maybe"',
  ),
  'a state of no name': at({ as_off: '2024-03-01' }, 'as_off: expected a known option; did you mean `as_of`?'),
}

/** Panels and others that are refused. */
export const panelRefused: Readonly<Record<string, Question>> = {
  'a metric of no name': panel({ decisions, metrics: ['supply/curent_pit'] }, `SQL: ${unknown}`),
  'a currency of no name': beside(
    { currency: 'usdd' },
    `SQL: ${supply} has no currency usdd: expected native, usd; did you mean \`usd\`?`,
  ),
  'an interval of no name': beside(
    { interval: '1d' },
    '{option interval}: expected 10m, 1h, 24h, 1w, 1month, got "1d"; did you mean `24h`?',
  ),
  'an interval that a metric does not have': panel(
    { decisions, metrics: [objects], interval: '10m' },
    `SQL: ${objects} has no interval 10m: expected 24h`,
  ),
  'a time without a unit': beside({ latency: '15' }, '{option latency}: expected a time such as 15m or 2d, got "15"'),
  'a number as a time': beside({ latency: 15 }, '{option latency}: expected a time such as 15m or 2d, got 15'),
  'an age that is none': beside({ max_age: 'soon' }, '{option max_age}: expected a time such as 15m or 2d, got "soon"'),
  'a field of no name': beside(
    { fields: ['v', 'available'] },
    '{option fields}: expected v, o, t, available_at, age, got "available"; did you mean `available_at`?',
  ),
  'a vintage of no name': beside({ vintage: 'nth' }, '{option vintage}: expected last, first, got "nth"'),
  'an identity of no name': beside({ identity: 'same' }, '{option identity}: expected apart, stitched, got "same"'),
  'a choice of no name': beside({ beyond: 'nil' }, '{option beyond}: expected value, null, got "nil"'),
  'a switch that is none': beside({ skip_nulls: 'maybe' }, '{option skip_nulls}: expected true or false, got "maybe"'),
  'a text that is none': beside({ currency: '' }, '{option currency}: expected a text, got ""'),
  'an option of no name': beside({ latencyy: '15m' }, 'latencyy: expected a known option; did you mean `latency`?'),
  'a metric twice': panel(
    { decisions, metrics: [supply, supply] },
    `{option metrics}: expected paths of metrics, each metric once, got ${supply}`,
  ),
  'no metrics': panel(
    { decisions, metrics: [] },
    '{option metrics}: expected paths of metrics, each metric once, got nothing',
  ),
  'a column twice': panel(
    { decisions: [{ ...decisions[0], V: 1 }], metrics: { v: supply } },
    'decisions: expected decisions without a column that the panel adds, got V; rename it',
  ),
  'decisions at no instant': panel(
    { ...asked, decisions: [{ asset: 'BTC', ts: 'never' }] },
    `decisions.0.ts: expected ${instant}, got "never"`,
  ),
  'decisions without an instant': panel(
    { ...asked, decisions: [{ asset: 'BTC' }] },
    `decisions.0.ts: expected ${instant}, got nothing`,
  ),
  'decisions without an asset': panel(
    { ...asked, decisions: [{ ts: '2024-03-04' }] },
    'decisions: expected an asset in each, or a universe, got one without',
  ),
  'a grid the wrong way round': panel(
    { ...grid, metrics: { v: supply }, calendar: { since: '2024-03-05', until: '2024-03-03', step: '1d' } },
    '{option calendar}: expected SINCE before UNTIL, got "2024-03-05,2024-03-03,1d"; the two are reversed',
  ),
  'a grid from never': panel(
    { ...grid, metrics: { v: supply }, calendar: { since: 'never', until: '2024-03-03', step: '1d' } },
    `{option calendar}: expected ${grids}, got "never,2024-03-03,1d"`,
  ),
  'a grid without a unit': panel(
    { ...grid, metrics: { v: supply }, calendar: { since: '2024-03-03', until: '2024-03-05', step: '15' } },
    '{option calendar}: expected a step such as 1h, 1d, 1w or 1month, got "15"',
  ),
  'a grid of nothing': panel(
    { calendar: grid.calendar, metrics: { v: supply } },
    '{option calendar}: expected {option assets} or {option universe} beside it, got neither',
  ),
  'a grid and decisions': panel({ ...grid, ...asked }, 'panel: expected calendar or decisions, got both'),
  'neither grid nor decisions': panel({ metrics: { v: supply } }, 'panel: expected calendar or decisions, got neither'),
  'assets and a universe': panel(
    { ...over(march, 'true'), assets: ['BTC'] },
    '{option calendar}: expected {option assets} or {option universe} beside it, got both',
  ),
  'a universe of no column': panel(
    over(march, "statu = 'active'"),
    'SQL (line 1 column 1): Referenced column "statu" not found in FROM clause! Candidate bindings: "status", "assumed", "asset_id", "issuer_id", "first_seen"',
  ),
  'a universe before it was known': panel(
    over(['2024-01-02', '2024-01-03'], 'true'),
    '{option universe}: expected instants from 2024-01-21 00:00:00+00 on, when the registry was first known, got 2024-01-02 00:00:00+00; or let the first snapshot stand in: {option registry_backfill=true}',
  ),
  'a universe that reads a file': panel(
    over(march, "status IN (FROM '/etc/hosts.csv')"),
    `SQL: expected files of the lake, got Cannot access file "/etc/hosts.csv"; ${ownFiles}`,
  ),
  'at no instant': panel(asked, `{option as_of}: expected ${instant}, got "never"`, { as_of: 'never' }),
  'of no metric': { ask: { join: { decisions, metric: 'supply/curent_pit' } }, refused: `SQL: ${unknown}` },
  'of a field that it adds': {
    ask: { join: { decisions: [{ ...decisions[0], V: 1 }], metric: supply } },
    refused: 'decisions: expected decisions without a column that the join adds, got V; rename it',
  },
  'of nothing': {
    ask: { join: { decisions, metric: supply, n: 0 } },
    refused: 'window: n: expected how many points, 1 or more, got 0',
  },
  'of none': { ask: { points: { metrics: [] } }, refused: 'metrics: expected names, at least one, got []' },
  'since never': {
    ask: { points: { metrics: supply, since: 'never' } },
    refused: `since: expected ${instant}, got "never"`,
  },
  'of prices and others': {
    ask: { points: { metrics: ['price_usd', supply] } },
    refused: 'points: metrics: expected price_usd alone, or metrics of points, got both',
  },
  'the wrong way round': {
    ask: { calendar: { since: '2024-03-05', until: '2024-03-03', step: '1d' } },
    refused: 'calendar: expected since before until, got 2024-03-05 and 2024-03-03; they are reversed',
  },
  'at no instant of theirs': {
    ask: { universe: { ts: 'never' } },
    refused: `{option ts}: expected ${instant}, got "never"`,
  },
}
