import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checked, checkers } from '../helpers/certified.ts'
import { withDesk } from '../helpers/importing.ts'

const questions = {
  'the largest value': 'SELECT max(v) AS v FROM points',
  'what lies beyond every value': 'SELECT count(*) AS n FROM points WHERE v > 1e300',
}

test('a certificate lists the files of a query that the engine answers by the statistics of one file', async () => {
  await withDesk(async ({ folder, put, run, take }) => {
    await take([put('p.csv', 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02,2\n'), '--as', 'p', '--available', 'end'])
    const key = join(folder, 'own.key')
    expect((await run(['keygen', '--out', key])).code).toBe(0)
    for (const [n, [name, sql]] of Object.entries(questions).entries()) {
      const query = put('q.sql', sql)
      const out = join(folder, `${n}.parquet`)
      const told = join(folder, `${n}.json`)
      expect(await run(['stamp', query, '--out', out]), name).toMatchObject({ code: 0 })
      expect(await run(['certify', out, '--key', key, '--out', told]), name).toMatchObject({ code: 0 })
      const { reads, live } = JSON.parse(readFileSync(told, 'utf8')) as {
        readonly reads: { readonly complete: boolean; readonly metrics: readonly string[] }
        readonly live: { readonly lists: Readonly<Record<string, readonly string[]>> }
      }
      // One import makes a recent file, which may hold several metrics.
      expect([name, reads, Object.keys(live.lists)]).toMatchObject([
        name,
        { complete: true, metrics: ['own/p'] },
        ['points -'],
      ])
    }
    // Nothing was preregistered: an empty list shows it.
    await take([put('o.csv', 'asset,t,value\nBTC,2024-03-01,1\nBTC,2024-03-02,2\n'), '--as', 'o', '--available', 'end'])
    await run(['stamp', join(folder, 'q.sql'), '--out', join(folder, 'more.parquet')])
    await run(['certify', join(folder, 'more.parquet'), '--key', key, '--out', join(folder, 'more.json')])
    for (const checker of checkers)
      expect(checked(checker, folder, ['0.json', '1.json', 'more.json'])).toMatchObject({ status: 0 })
  })
})
