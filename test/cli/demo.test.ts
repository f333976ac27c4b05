// @module-tag full
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pitlake } from '../helpers/command.ts'
import { makeFolder } from '../helpers/folders.ts'

let home: string
beforeAll(() => {
  home = makeFolder('demo')
  // Neither may have a part in the demo.
  writeFileSync(join(home, 'pitlake.yaml'), 'metrics: { url: not-a-url }\n')
})
afterAll(() => rmSync(home, { recursive: true }))

const provider = {
  PITLAKE_METRICS_URL: 'http://127.0.0.1:9',
  PITLAKE_METRICS_KEY: 'nobodys-key',
  PITLAKE_DATA: 'elsewhere',
}

/** The Sharpe ratio that a line says. */
const sharpeIn = (line: string): number => Number(/Sharpe (-?\d+\.\d+)/.exec(line)?.[1])

describe('demo', () => {
  test('--keep leaves two queries that differ in one line, the leaking one with the higher Sharpe ratio', async () => {
    const { code, out } = await pitlake(home, ['demo', '--keep', 'kept'], provider)
    expect(code).toBe(0)
    const [leaky = '', clean = ''] = out.split('\n').filter((line) => line.includes('Sharpe'))
    expect(sharpeIn(leaky)).toBeGreaterThan(sharpeIn(clean) + 0.5)
    const [first = [], second = []] = ['joined-on-t.sql', 'point-in-time.sql'].map((file) =>
      readFileSync(join(home, 'kept', file), 'utf8').split('\n'),
    )
    expect(first.filter((line) => !second.includes(line))).toEqual(['ASOF JOIN signal AS s ON d.ts >= s.t'])
    expect(second.filter((line) => !first.includes(line))).toEqual(['ASOF JOIN signal AS s ON d.ts >= s.available_at'])
    expect(readdirSync(home).toSorted()).toEqual(['kept', 'pitlake.yaml'])
  })

  test('the command that the demo suggests finds the same leak, and the second query is clean', async () => {
    rmSync(join(home, 'pitlake.yaml'))
    const { out } = await pitlake(home, ['demo'])
    const said = /leak: (on .*)/.exec(out)?.[1] ?? 'nothing'
    const verdict = (file: string) =>
      pitlake(home, ['lookahead', `kept/${file}`, '--data', 'kept/lake', '--cutoffs', '10'])
    const leak = await verdict('joined-on-t.sql')
    expect([leak.code, leak.out]).toEqual([4, expect.stringContaining(said)])
    expect((await verdict('point-in-time.sql')).code).toBe(0)
  })

  test('a folder that contains a demo is refused and stays as it is', async () => {
    const { code, message } = await pitlake(home, ['demo', '--keep', 'kept'])
    expect([code, message]).toEqual([2, '--keep: expected a folder without a demo, got kept; name a new folder'])
  })
})
