import { expect, test } from 'vitest'
import type { Engine, Row } from '../../src/lake/store/engine.ts'
import { doubtsOfFilter, doubtsOfPanel, isDoubtful, notesOf } from '../../src/query/answer-notes.ts'
import type { Empty } from '../../src/query/filled-columns.ts'
import { partOf } from '../helpers/part-of.ts'
import type { PanelSpec } from '../../src/query/panel.ts'

const empty = (column: string, rest: Partial<Empty> = {}): Empty => ({ column, assets: [], everywhere: true, ...rest })

test.each([
  ['no rows', 0, [], false, true],
  ['a column without a value', 1, [empty('v')], false, true],
  ['a column without a value for one asset', 2, [empty('v', { assets: ['BTX'], everywhere: false })], false, false],
  ['no value in columns that most metrics lack', 1, [empty('computed_at'), empty('Currency')], false, false],
  ['a count of 0', 1, [empty('n', { zero: true })], true, true],
  ['a value of 0', 1, [empty('n', { zero: true })], false, false],
] as const)('an answer with %s is doubtful or not', (_, rows, columns, counts, doubtful) => {
  expect(isDoubtful(rows, columns, counts)).toBe(doubtful)
})

test('a panel asks for notes about a column without a value, and not about one that holds 0', () => {
  const spec = partOf<PanelSpec>({
    metrics: [
      { name: 'a', metric: 'x/a' },
      { name: 'b', metric: 'x/b' },
    ],
    interval: '24h',
  })
  const lost = [empty('a', { assets: ['BTX'] }), empty('b', { zero: true })]
  expect(doubtsOfPanel(spec, lost, null).metrics).toMatchObject([{ name: 'x/a', asset: ['BTX'] }])
})

test.each([
  [{ since: '2024-01-01' }, true],
  [{ until: '2024-01-01' }, true],
  [{}, false],
])('a filter of %j asks for a part of the time: %s', (filter, times) => {
  expect(doubtsOfFilter(filter, []).metrics).toMatchObject([{ times }])
})

interface FailingEngine {
  readonly engine: Engine
  /** Statements in the order in which they were run. */
  readonly run: readonly string[]
}

/** An engine with an `as_of` whose query for notes fails. */
function failingEngine(message: string): FailingEngine {
  const run: string[] = []
  const engine = partOf<Engine>({
    rows: async <T extends Row>(sql: string): Promise<T[]> => {
      run.push(sql)
      const answer: Row = { at: '2024-01-01 00:00:00+00' }
      // Cast: the one question that is answered has a row of this form.
      if (!sql.includes('question_notes')) return await Promise.resolve([answer as T])
      throw new Error(message)
    },
    run: async (sql) => await Promise.resolve(run.push(sql)),
  })
  return { engine, run }
}

test.each([
  ['Out of Memory Error: failed to allocate', 'too little memory'],
  [`Out of Memory Error: failed to offload: max_temp_directory_size`, 'too little disk'],
  ['INTERNAL Error: anything', 'an error of DuckDB, please report it'],
])('notes lost by %s are reported as %s', async (message, subject) => {
  const { engine } = failingEngine(message)
  expect(await notesOf(engine, { texts: ['btc'] }, true)).toEqual([{ code: 'unnoted', subject }])
})

test('a lake without the macro of notes has no notes', async () => {
  const { engine } = failingEngine('Catalog Error: Table Function question_notes does not exist')
  expect(await notesOf(engine, { texts: ['btc'] }, true)).toEqual([])
})

test.each([
  [true, false],
  [false, true],
])('notes under a mandatory limit (%s) look past as_of: %s', async (cut, past) => {
  const { engine, run } = failingEngine('Catalog Error: none')
  await notesOf(engine, { texts: ['btc'] }, cut)
  const before = run.slice(
    0,
    run.findIndex((sql) => sql.includes('question_notes')),
  )
  expect(before.some((sql) => /SET VARIABLE as_of/.test(sql))).toBe(past)
})
