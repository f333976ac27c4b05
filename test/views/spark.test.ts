import { readFileSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askReaders, publishGolden, runPage, type Told } from '../helpers/golden-readers.ts'
import { need } from '../helpers/needs.ts'
import { makeFolder } from '../helpers/folders.ts'

// Asked by `make test-spark` alone: a session takes long to start, and Java and half a gigabyte of packages must be
// had.
const { PITLAKE_SPARK: there = '', PITLAKE_SPARK_WRITE: write = '' } = process.env

describe('Spark', () => {
  let home = ''
  beforeAll(async () => {
    if (there === '') return
    home = makeFolder('spark')
    await publishGolden(home)
  }, 300_000)
  afterAll(() => {
    if (home !== '') rmSync(home, { recursive: true, force: true })
  })

  test.for([
    ['spark', 100_800],
    ['pyspark', 37_800],
  ] as const)(
    'L1: %s answers %i decisions by the published text as brute force does',
    { timeout: 1_200_000 },
    ([engine, decisions], context) => {
      const [told] = askReaders<Told>(need(context, 'spark'), home, [engine])
      expect(told).toMatchObject({ engine, decisions, universes: 6, differences: [] })
      expect(told?.answered).toBeGreaterThan(decisions / 2)
    },
  )

  test('the notebook shows what Spark says', (context) => {
    expect(runPage(need(context, 'spark'), home, 'how-to/spark.ipynb', write !== '')).toBe('')
  }, 1_200_000)
})

test('the Spark notebook has the output of every cell that prints', () => {
  const { cells } = JSON.parse(readFileSync(new URL('../../docs/how-to/spark.ipynb', import.meta.url), 'utf8')) as {
    cells: {
      cell_type: string
      execution_count?: number | null
      outputs?: { output_type: string }[]
      source: string[]
    }[]
  }
  const code = cells.filter(({ cell_type }) => cell_type === 'code')
  expect(code.length).toBeGreaterThanOrEqual(6)
  for (const [n, { execution_count: count, outputs = [], source }] of code.entries()) {
    expect(count).toBe(n + 1)
    expect(outputs.map(({ output_type: kind }) => kind)).toEqual(
      /print\(|\.show\(/.test(source.join('')) ? ['stream'] : [],
    )
  }
})
