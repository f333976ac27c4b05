import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { complete } from '../../src/interfaces/server/session-commands.ts'
import { openQuery } from '../../src/query/lake.ts'
import type { Engine } from '../../src/lake/store/engine.ts'
import { runSession } from '../../src/interfaces/server/session.ts'
import { until } from '../helpers/processes.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { Screen } from '../helpers/screen.ts'

const { root: folder } = lakeOfFile(hundredFetchedDays)

interface Seat {
  /** Types a line and waits for the answer. */
  readonly ask: (line: string, until: string) => Promise<string>
  readonly type: (keys: string) => void
  readonly end: () => void
  readonly screen: Screen
  /** How often it has looked at the clock: at the begin of each statement and at its end. */
  readonly looks: () => number
  readonly left: Promise<void>
}

/** A session on a made-up terminal; without `terminal` a pipe. */
async function sit(
  terminal: boolean,
  historyFile?: string,
  height = 24,
  engines: { readonly first?: Engine; readonly reopen?: () => Promise<Engine> } = {},
): Promise<Seat> {
  const engine = engines.first ?? (await openQuery(folder))
  const input = new PassThrough()
  const screen = new Screen()
  let looks = 0
  const left = runSession(engine, folder, {
    input,
    output: screen,
    terminal,
    size: () => ({ width: 80, height }),
    now: () => 5 * ++looks,
    sleep: setTimeout,
    historyFile,
    ...(engines.reopen && { reopen: engines.reopen }),
  }).finally(() => engine.close())
  await screen.until(terminal ? 'lake> ' : 'cancels.\n')
  return {
    screen,
    left,
    looks: () => looks,
    type: (keys) => void input.write(keys),
    end: () => void input.end(),
    ask: async (line, until) => {
      const from = screen.text.length
      input.write(`${line}\n`)
      return screen.until(until, from)
    },
  }
}

/** An engine that answers nothing more after a statement with the word FATAL, as DuckDB does after such an error. */
function mortal(engine: Engine): Engine {
  let isDead = false
  return new Proxy(engine, {
    get: (target, name) => {
      const held: unknown = Reflect.get(target, name, target)
      if (typeof held !== 'function') return held
      return (...given: readonly unknown[]) => {
        const [sql] = given
        if (name !== 'close' && isDead)
          throw new Error('FATAL Error: Failed: database has been invalidated\n/x.so [0x7f]')
        if (typeof sql === 'string' && sql.includes('FATAL')) {
          isDead = true
          throw new Error('FATAL Error: Failed to read\n\nStack Trace:\n\n/x.so [0x7f]')
        }
        return Reflect.apply(held, target, given) as unknown
      }
    },
  })
}

describe('a session whose engine gave up after a fatal error', () => {
  test('the next statement is answered by a new engine at the same as_of', async () => {
    const first = mortal(await openQuery(folder))
    const seat = await sit(false, undefined, 24, { first, reopen: async () => await openQuery(folder) })
    await seat.ask(
      '.timer off\n.format jsonl\n.as_of 2024-01-02T00:10:00Z\nCREATE TEMP TABLE mine AS SELECT 1 AS a;',
      'done',
    )
    expect(await seat.ask("SELECT 'FATAL' AS a;", '\n')).toBe(
      'error: SQL: expected a query that DuckDB can run, got an internal error of DuckDB; write it in another way\n',
    )
    expect(await seat.ask('SELECT count(*) AS n FROM points;', 'row)')).toBe(
      'note: DuckDB gave up after a fatal error; the session goes on with version 2, without its temporary tables and variables\n' +
        '{"n":4}\n(1 row)\n',
    )
    expect(await seat.ask('FROM mine;', 'error')).toContain('mine does not exist')
    expect(await seat.ask('.as_of', 'Z\n')).toBe('as_of: 2024-01-02T00:10:00Z\n')
    seat.end()
    await seat.left
  })

  test('answers what was begun on the line of the statement that ended the engine', async () => {
    const first = mortal(await openQuery(folder))
    const seat = await sit(false, undefined, 24, { first, reopen: async () => await openQuery(folder) })
    await seat.ask(".timer off\n.format jsonl\nSELECT 'FATAL' AS a; SELECT 3", 'another way\n')
    expect(await seat.ask('AS a;', 'row)')).toMatch(/^note: .*\n\{"a":3\}\n/)
    seat.end()
    await seat.left
  })

  test('says in one line what to do where the lake cannot be opened again, and tries with each statement', async () => {
    let tries = 0
    const reopen = async (): Promise<Engine> => {
      if (++tries === 1) throw new Error('the disk is gone')
      return await openQuery(folder)
    }
    const seat = await sit(false, undefined, 24, { first: mortal(await openQuery(folder)), reopen })
    await seat.ask(".timer off\n.format jsonl\nSELECT 'FATAL' AS a;", 'another way\n')
    expect(await seat.ask('SELECT 1 AS a;', '\n')).toBe(
      'error: DuckDB gave up after a fatal error: expected a lake that can be opened again, got the disk is gone; leave with .quit and run pitlake sql again\n',
    )
    expect(await seat.ask('SELECT 2 AS a;', 'row)')).toMatch(/^note: .*\n\{"a":2\}\n\(1 row\)\n$/)
    seat.end()
    await seat.left
  })
})

describe('a session at a pipe', () => {
  test('statements over several lines, dot commands, errors that do not end it', async () => {
    const seat = await sit(false)
    expect(await seat.ask("SELECT count(*) AS n\nFROM points -- ; not yet\nWHERE asset = 'BTC';", 'ms)')).toContain(
      '  n\n---\n200\n(1 row, ',
    )
    expect(await seat.ask('SELECT nope; SELECT 7 AS later;', 'error')).toMatch(/error: SQL \(line 1 column 8\)/)
    expect(await seat.ask("SELECT ';' AS a; SELECT 2 AS b;", 'b\n-\n2\n(1 row')).toContain('a\n-\n;\n(1 row')
    expect(await seat.ask('.as_of 2024-01-02T00:10:00Z\nSELECT count(*) AS n FROM points;', 'ms)')).toContain('\n4\n')
    expect(await seat.ask('.as_of', 'as_of')).toBe('as_of: 2024-01-02T00:10:00Z\n')
    expect(await seat.ask('.as_of never', 'error')).toContain('.as_of: expected an instant such as 2024-06-01')
    expect(await seat.ask('SELECT * FROM universe;', 'ms)')).toContain('note: the registry is not known at this as_of')
    expect(await seat.ask('.as_of now\nSELECT count(*) AS n FROM points;', 'ms)')).toContain('\n400\n')
    expect(await seat.ask('.observed_as_of 2024-01-01\n.observed_as_of', 'observed_as_of')).toContain('2024-01-01')
    expect(await seat.ask('.quti', 'error')).toContain('did you mean `.quit`?')
    seat.type('.quit\n')
    await seat.left
    expect(seat.screen.text).not.toContain('later')
  })

  test('dot commands list tables, macros, metrics and assets', async () => {
    const seat = await sit(false)
    expect(await seat.ask('.tables', 'resample(…)\n')).toMatch(
      /history.products\nhistory.provenance\n[^(]*\nlake_info\nlinks\n[^(]*\npoints\nprice_usd\n/,
    )
    expect(await seat.ask('.tables pit*', 'pit_window(…)\n')).toBe(
      'pit_join(…)\npit_long(…)\npit_registry(…)\npit_universe(…)\npit_window(…)\n',
    )
    expect(await seat.ask(`.metrics 'supply/*'`, '\n')).toBe('supply/current_pit\n')
    expect(await seat.ask('.metrics none', '\n')).toBe('nothing of that name\n')
    expect(await seat.ask('.assets', 'ETH\n')).toBe('BTC\nETH\n')
    expect(await seat.ask('.columns points', 'start of the interval')).toMatch(/t +TIMESTAMP WITH TIME ZONE +start of/)
    expect(await seat.ask('.columns history.products', 'record')).toMatch(
      /\nid [\s\S]*\nvalid_from [\s\S]*\nvalid_to [\s\S]*\nrecord /,
    )
    expect(await seat.ask('.columns nope', 'error')).toContain('expected a table or view')
    expect(await seat.ask('.help', '.quit')).toContain('.observed_as_of')
    seat.type('.exit\n')
    await seat.left
  })

  test('formats, files, row limits, the timer', async () => {
    const seat = await sit(false)
    expect(await seat.ask('.timer off\n.format jsonl\nSELECT 1 AS a;', 'row)')).toBe('{"a":1}\n(1 row)\n')
    expect(await seat.ask('.format parquet\nSELECT 1 AS a;', 'error')).toContain('`.out FILE` before the query')
    expect(await seat.ask('.format xml', 'error')).toContain('expected table, csv, json, jsonl, arrow, parquet')
    expect(await seat.ask('.format csv.gz\nSELECT 1 AS a;', 'error')).toContain('`.out FILE` before the query')
    expect(await seat.ask('.format csv\n.out x.gz', 'error')).toContain('--format csv.gz')
    const file = join(folder, '..', 'out.csv')
    expect(await seat.ask(`.out ${file}\nSELECT 1 AS a, 'x' AS b;`, 'row to')).toContain(`(1 row to ${file})`)
    expect(await readFile(file, 'utf8')).toBe('a,b\n1,x\n')
    // What gives no rows is done in every format, and leaves the file to the next result.
    for (const format of ['csv', 'jsonl', 'arrow'])
      expect(await seat.ask(`.format ${format}\n.out ${file}\nSET VARIABLE x = 2;`, 'done')).toContain('(done)\n')
    expect(await seat.ask("SELECT getvariable('x') AS x;", 'row to')).toContain(`(1 row to ${file})`)
    expect(await readFile(file, 'utf8')).toBe('x\n2\n')
    const parquet = join(folder, '..', 'out.parquet')
    await seat.ask(`.out ${parquet}\nSELECT range AS i FROM range(5);`, '5 rows to')
    expect((await readFile(parquet)).subarray(0, 4).toString()).toBe('PAR1')
    expect(await seat.ask(`.out ${folder}/journal/x.csv\nSELECT 1;`, 'error')).toContain('a file outside the lake')
    expect(await seat.ask('.format table\n.rows 10\nSELECT range AS i FROM range(2000);', 'rows)')).toContain(
      '(first 500 rows)',
    )
    seat.type('SELECT 8 AS unfinished')
    seat.type('\n')
    seat.type('.quit\n')
    await seat.left
  })

  test('a statement without its `;` runs at the end of the input', async () => {
    const seat = await sit(false)
    seat.type('SELECT 41 + 1 AS answer')
    seat.end()
    await seat.left
    expect(seat.screen.text).toContain('answer\n------\n    42\n')
  })
})

describe('a session at a terminal', () => {
  test('prompt, completion, Ctrl-C at the prompt and in a query, history', async () => {
    const history = join(folder, '..', 'history')
    const seat = await sit(true, history)
    seat.type('SELECT count(*) AS n FROM poi\t')
    await seat.screen.until('FROM points')
    seat.type(" WHERE metric = 'ind\t")
    await seat.screen.until("'indicators/one")
    seat.type("';\n")
    expect(await seat.screen.until('ms)')).toContain('200')
    seat.type('SELECT half of a\n')
    await seat.screen.until('...> ')
    const before = seat.screen.text.length
    seat.type('line\u0003')
    await seat.screen.until('^C', before)
    await seat.screen.until('lake> ', before)
    const looks = seat.looks()
    seat.type('SELECT count(*)\nFROM range(100000000000) a, range(1000) b;\n')
    await until(() => seat.looks() > looks, 'a statement at work')
    seat.type('\u0003')
    await seat.screen.until('error: the query was cancelled', before)
    seat.type('.as_of 2024-02-01\n')
    await seat.screen.until('lake @ 2024-02-01> ')
    seat.type('\u0004')
    await seat.left
    const kept = await readFile(history, 'utf8')
    expect(kept).toContain('SELECT count(*) FROM range(100000000000) a, range(1000) b;\n.as_of 2024-02-01\n')
    const again = await sit(true, history)
    again.type('\u001b[A')
    await again.screen.until('.as_of 2024-02-01')
    again.type('\u0003')
    await again.screen.until('^C')
    again.type('\u0004')
    await again.left
  })

  test('long results come page by page and stop on request', async () => {
    const seat = await sit(true, undefined, 10)
    const from = seat.screen.text.length
    seat.type('SELECT range AS number FROM range(1000000000000);\n')
    await seat.screen.until('-- Enter for more', from)
    expect(seat.screen.text.slice(from)).not.toContain('       8')
    const second = seat.screen.text.length
    seat.type('\n')
    expect(await seat.screen.until('-- Enter for more', second)).toContain('8')
    seat.type('q\n')
    await seat.screen.until('stopped, 500 rows fetched', second)
    seat.type('SELECT 5 AS five;\n')
    await seat.screen.until('(1 row', second)
    seat.type('.quit\n')
    await seat.left
  })
})

describe('completion', () => {
  const words: Parameters<typeof complete>[1] = {
    tables: ['points', 'series', 'history.products'],
    columns: ['asset', 'available_at', 'metric'],
    functions: ['pit_join'],
    metrics: ['supply/current_pit', 'indicators/one'],
    assets: ['BTC', 'ETH'],
  }
  test.each([
    ['SELECT * FROM po', ['points'], 'po'],
    ['FROM hist', ['history.products'], 'hist'],
    ['FROM history.pr', ['history.products'], 'history.pr'],
    ['sel', ['select'], 'sel'],
    ['SEL', ['SELECT'], 'SEL'],
    ['SELECT a', ['asset', 'available_at', 'asof join'], 'a'],
    ['FROM pit', ['pit_join('], 'pit'],
    ["WHERE metric = 'sup", ['supply/current_pit'], 'sup'],
    ["WHERE asset = 'b", ['BTC'], 'b'],
    ["WHERE a = 'x' AND se", ['series', 'select', 'set variable'].filter((word) => word.startsWith('se')), 'se'],
    ['.as', ['.as_of', '.assets'], '.as'],
    ['.metrics ind', ['indicators/one'], 'ind'],
    ['.format j', ['json', 'jsonl', 'json.gz', 'jsonl.gz'], 'j'],
    ['.out x', [], 'x'],
    ['nothing_like_it', [], 'nothing_like_it'],
  ])('%j', (line, hits, fragment) => expect(complete(line, words)).toEqual([hits, fragment]))
})
