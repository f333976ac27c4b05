import type { DoorName, Kind, Owed, OwedNote } from './question.ts'

/** What can be asked at a door; for everything else there is no word. */
export const asked: Readonly<Record<DoorName, readonly Kind[]>> = {
  command: ['sql', 'panel'],
  session: ['sql'],
  stamp: ['sql'],
  // It gives no rows: here it is asked what every door refuses.
  lookahead: ['sql'],
  serve: ['sql', 'panel', 'metrics'],
  mcp: ['sql', 'panel', 'universe', 'metrics'],
  library: ['sql', 'panel', 'join', 'points', 'calendar', 'universe', 'metrics'],
  python: ['sql', 'panel', 'join', 'points', 'calendar', 'universe', 'metrics'],
}

/** Where a door answers otherwise, and why it may. */
export interface Exception {
  readonly why: string
  readonly doors: readonly DoorName[]
  /** Questions by their names, each with what is owed there; null where it cannot be asked at all. */
  readonly owed: Readonly<Record<string, Owed | null>>
}

const one = (got: string): Owed => ({ refused: `SQL: expected one SELECT, got ${got}` })
const past = (got: string): Owed => ({
  refused: `SQL: expected a query that only reads, got ${got}; only the views and macros of the lake are read here: they obey as_of, files do not`,
})

const strange = (command: string, flag: string, meant: string): Owed => ({
  refused: `pitlake ${command}: expected a known option, got ${flag}; ${meant}`,
})
const cannot = (...names: readonly string[]): Readonly<Record<string, null>> =>
  Object.fromEntries(names.map((name) => [name, null]))
const instant = 'an instant such as 2024-06-01 or 2024-06-01T12:00:00Z, UTC'

const unknownThen = (subject: string): readonly OwedNote[] => [
  ['unknown-then', subject, `nothing of '${subject}' was known at this as_of`],
]
const noSnapshot: readonly OwedNote[] = [
  [
    'registry-empty',
    'registry',
    'the registry is not known at this as_of: it holds no snapshot known by then; {option registry_backfill=true} lets its earliest state stand in',
  ],
]

/** All of them. */
export const exceptions: readonly Exception[] = [
  {
    why: 'whoever is not trusted asks one SELECT',
    doors: ['serve', 'mcp'],
    owed: {
      'sql: the last of two statements': one('several statements'),
      'sql: a table that is made': one('CREATE'),
      'sql: what writes a file': one('COPY'),
      'sql: a setting': one('SET'),
      'sql: another database': one('ATTACH'),
    },
  },
  {
    why: 'and reads views and macros of the lake alone',
    doors: ['serve', 'mcp'],
    owed: {
      'sql: a file': past('/etc/decisions.csv'),
      'sql: a function that reads files': past('read_csv'),
      'panel: a universe that reads a file': past('/etc/hosts.csv'),
    },
  },
  {
    why: 'under as_of nothing is told of what came later, not by a note either',
    doors: ['serve', 'mcp'],
    owed: {
      'sql: backfilled points are not known': { rows: [{ n: 0 }], notes: unknownThen('indicators/cvdd_pit') },
      'sql: the registry before it was known': { rows: [{ n: 0 }], notes: noSnapshot },
      'panel: a panel as it was known': { rows: [{ asset: 'BTC', ts: '2024-03-05T00:30:00.000000Z', v: 3 }] },
    },
  },
  {
    why: 'and an agent always names one',
    doors: ['mcp'],
    owed: {
      'sql: a metric that was never fetched': {
        rows: [{ ts: '2024-03-04T00:30:00.000000Z', v: null }],
        notes: unknownThen('indicators/asol_pit'),
      },
      'universe: products before they were known': { rows: [], notes: noSnapshot },
    },
  },
  {
    why: 'a proof needs the rows of one query',
    doors: ['lookahead'],
    owed: {
      'sql: no statement': {
        refused:
          'SQL: expected one SELECT, behind SET VARIABLE and CREATE TEMP TABLE … AS, got other statements; a proof needs the rows of one query',
      },
    },
  },
  {
    why: 'the instants of a proof are its own',
    doors: ['lookahead'],
    owed: cannot('sql: an as_of that is none', 'sql: an as_of in seconds', 'sql: an observed_as_of that is no day'),
  },
  {
    why: 'a session answers each statement, and nothing where there is none',
    doors: ['session'],
    owed: { 'sql: the last of two statements': { rows: [{ a: 1 }, { a: 2 }] }, 'sql: no statement': null },
  },
  {
    why: 'in a session SQL sets its variables, and SQL takes any value',
    doors: ['session'],
    owed: cannot('sql: a backfill that is none', 'sql: a switch that is none'),
  },
  {
    why: 'a command names its own options',
    doors: ['command'],
    owed: {
      'sql: a state of no name': strange('sql', '--as-off', 'did you mean `--as-of`?'),
      'panel: an option of no name': strange('panel', '--latencyy', 'did you mean `--latency`?'),
    },
  },
  {
    why: 'likewise',
    doors: ['stamp'],
    owed: { 'sql: a state of no name': strange('stamp', '--as-off', 'did you mean `--as-of`?') },
  },
  {
    why: 'likewise',
    doors: ['lookahead'],
    owed: { 'sql: a state of no name': strange('lookahead', '--as-off', 'see `pitlake lookahead --help`') },
  },
  {
    why: 'likewise a session',
    doors: ['session'],
    owed: {
      'sql: a state of no name': {
        refused: '.as_off: expected a command of the session, got .as_off; did you mean `.as_of`?',
      },
    },
  },
  {
    why: 'the library names options in camel case',
    doors: ['library'],
    owed: { 'sql: a state of no name': { refused: 'asOff: expected a known option; did you mean `asOf`?' } },
  },
  {
    why: 'Python itself refuses a keyword that there is not',
    doors: ['python'],
    owed: {
      'sql: a state of no name': { refused: "TypeError: open() got an unexpected keyword argument 'as_off'" },
      'panel: an option of no name': {
        refused: "TypeError: Lake.panel() got an unexpected keyword argument 'latencyy'",
      },
    },
  },
  {
    why: 'a flag has texts, and a switch takes none',
    doors: ['command'],
    owed: cannot('panel: a number as a time', 'panel: a switch that is none', 'panel: no metrics'),
  },
  {
    why: 'decisions are a table there: a file or a frame, of which no record has a name',
    doors: ['command', 'python'],
    owed: {
      'panel: decisions at no instant': { refused: `{option decisions}: expected ${instant}, got "never"` },
      'panel: decisions without an instant': {
        refused: '{option decisions}: expected columns asset and ts, got asset',
      },
      'panel: decisions without an asset': { refused: '{option decisions}: expected columns asset and ts, got ts' },
    },
  },
  {
    why: 'and a file is named',
    doors: ['command'],
    owed: {
      'panel: a column twice': {
        refused: '{option decisions}: expected decisions without a column that the panel adds, got V; rename it',
      },
    },
  },
  {
    why: 'a condition is judged with the rest of the query there',
    doors: ['python'],
    owed: {
      'panel: a universe of no column': {
        refused:
          'SQL: Referenced column "statu" not found in FROM clause! Candidate bindings: "status", "assumed", "asset_id", "issuer_id", "first_seen"',
      },
    },
  },
  {
    why: 'in a process of its own Python reads and writes what it likes',
    doors: ['python'],
    owed: cannot(
      'sql: what writes a file',
      'sql: a setting',
      'sql: another database',
      'sql: a file',
      'sql: a function that reads files',
      'panel: a universe that reads a file',
    ),
  },
  {
    why: 'Python has frames of its own, which SQL may have meant',
    doors: ['python'],
    owed: {
      'sql: a table of no name': {
        refused:
          'SQL (line 2 column 8): Table with name pionts does not exist! Did you mean "points"?; a frame is lent by its name: frames={\'name\': frame}',
      },
    },
  },
  {
    why: 'the engine that refuses it is asked by the name of the place: Python parses no SQL itself',
    doors: ['python'],
    owed: {
      'sql: an option with =': {
        refused: 'SQL (line 2 column 15): supply/current_pit has no currency false: expected native, usd',
      },
    },
  },
  {
    why: 'a calendar is a call of its own there, and says itself what it lacks',
    doors: ['python'],
    owed: {
      ...cannot('panel: a grid and decisions', 'panel: neither grid nor decisions'),
      'panel: a grid the wrong way round': {
        refused: 'calendar: expected since before until, got 2024-03-05 and 2024-03-03; they are reversed',
      },
      'panel: a grid from never': { refused: `since: expected ${instant}, got "never"` },
      'panel: a grid without a unit': { refused: 'step: expected a time such as 15m or 2d, got "15"' },
      'panel: a grid of nothing': { refused: 'decisions: expected columns asset and ts, got ts' },
      'panel: assets and a universe': {
        refused: 'decisions: expected decisions without a column that the panel adds, got asset; rename it',
      },
    },
  },
  {
    why: 'a Date has milliseconds, and no end of time',
    doors: ['library'],
    owed: {
      'sql: a microsecond': { rows: [{ at: '2024-03-01T00:00:00.000000Z' }] },
      'sql: an end that is open': { rows: [{ id: 'p1', valid_to: null }] },
    },
  },
  {
    why: 'nor has a frame',
    doors: ['python'],
    owed: { 'sql: an end that is open': { rows: [{ id: 'p1', valid_to: null }] } },
  },
  {
    why: 'only an agent asks for products under a condition',
    doors: ['library', 'python'],
    owed: cannot('universe: products under a condition'),
  },
]
