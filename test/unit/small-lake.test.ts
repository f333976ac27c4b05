import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { moveScript } from '../../src/query/moved-script.ts'
import { smallLakeOf } from '../../src/trust/reproduction/small-lake.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { noiseAndRisingSupply } from '../helpers/lakes/noise-and-rising-supply.ts'

const lake = lakeOfFile(noiseAndRisingSupply)

test.each(['/srv/plain', "/it's", '/a [1] b*c?', '/one (bracket', "/a[b]*c'd) concat("])(
  'a small lake of %s has the tables and views of any other folder',
  (folder) => {
    const script = readFileSync(join(lake.root, 'lake.sql'), 'utf8')
    const query = `SELECT ts, v FROM pit_join('d', 'price_usd', '24h'), points, coverage`
    const here = smallLakeOf(script, query)
    const there = smallLakeOf(moveScript(script, lake.root, folder), query)
    expect(here?.tables.length).toBeGreaterThan(2)
    expect(JSON.stringify(here?.objects)).not.toContain(lake.root)
    expect(there?.objects).toEqual(here?.objects)
    expect(there?.tables).toEqual(
      here?.tables.map(({ name, relation }) => ({ name, relation: moveScript(relation, lake.root, folder) })),
    )
  },
)
