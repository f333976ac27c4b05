import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { test } from '../helpers/lake-test.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'

test('a Parquet file with an unreadable stamp note is reported as damaged', async ({ root }) => {
  await makeLake(root, [{ at: '2024-01-01' }])
  const file = join(root, 'r.parquet')
  using engine = await Engine.open(':memory:')
  for (const note of ['null', '{', '[1]', '{"lake":"l","version":"1"}']) {
    const written = `(FORMAT parquet, KV_METADATA {pitlake_stamp: ${quote(note)}})`
    await engine.run(`COPY (SELECT 1 AS a) TO ${quote(file)} ${written}`)
    const { code, message } = await pitlake(root, ['replay', file, '--data', root])
    expect([note, code, message]).toEqual([note, 4, expect.stringContaining('got a damaged one')])
  }
})

test('a file that is not Parquet is a wrong argument of replay; a Parquet file that was cut is damaged', async ({
  root,
}) => {
  await makeLake(root, [{ at: '2024-01-01' }])
  const file = join(root, 'r.csv')
  const replayed = async (content: string) => {
    writeFileSync(file, content)
    const { code, message } = await pitlake(root, ['replay', file, '--data', root])
    return [code, message]
  }
  for (const content of ['asset,ts\nBTC,2024-01-01\n', '', 'PAR'])
    expect(await replayed(content)).toEqual([
      2,
      expect.stringContaining('expected a result of pitlake stamp, got a file that is not Parquet'),
    ])
  for (const content of ['PAR1 and no more', 'no more than PAR1'])
    expect(await replayed(content)).toEqual([4, expect.stringContaining('got a damaged one')])
})
