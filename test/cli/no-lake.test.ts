import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { inFolder } from '../helpers/folders.ts'
import { pitlake } from '../helpers/command.ts'

const env = {
  PITLAKE_METRICS_URL: 'http://127.0.0.1:9',
  PITLAKE_METRICS_KEY: 'a-key-of-nobody',
  PITLAKE_REGISTRY_URL: 'http://127.0.0.1:9/registry/v1',
  PITLAKE_REGISTRY_KEY: 'another-key-of-nobody',
}

test.each([
  ['fetch', '--assets', 'BTC', '--paths', 'no/such_path'],
  ['fetch', '--assets', 'BTC', '--paths', 'supply/*', '--intervals', '7h'],
  ['fetch', '--assets', 'BTC', '--currencies', 'usd', '--paths', 'addresses/active_count_pit', '--exchanges', 'x'],
  ['fetch', '--assets', 'BTC', '--since', 'yesterday'],
  ['fetch', '--assets', 'BTC', '--since', '2024-02-01', '--until', '2024-01-01'],
  ['fetch', '--assets', 'BTC', '--max-requests', 'few'],
  ['fetch', '--assets', 'BTC', '--no-such-flag'],
  ['fetch', '--assets', ','],
  ['plan', '--assets', 'BTC', '--paths', 'no/such_path'],
  ['verify', '--sample', 'much'],
  ['registry', 'snapshot', '--max-requests', 'few'],
  ['registry', 'sync', '--no-such-flag'],
  ['registry', 'status'],
  ['stamp', 'q.sql', '--out', 'r.parquet'],
  ['replay', 'none.parquet'],
  ['explain-change', 'none.parquet'],
  ['when', 'none.csv'],
  ['status'],
  ['views'],
  ['compact'],
  ['redate'],
  ['vacuum'],
  ['vacuum', '--yes'],
  ['doctor'],
  ['doctor', '--repair', '--rebuild-ledger'],
  ['versions'],
  ['audit', 'availability'],
  ['sql', 'SELECT 1'],
  ['lookahead', 'q.sql'],
])('%s %s %s: exit 2, and nothing is left where no lake was', (...argv) =>
  inFolder(async (cwd) => {
    writeFileSync(join(cwd, 'q.sql'), 'SELECT 1 AS one')
    const { code, message } = await pitlake(cwd, argv, env)
    expect([code, message]).toEqual([2, expect.stringMatching(/./)])
    expect(readdirSync(cwd, { recursive: true })).toEqual(['q.sql'])
  }),
)
