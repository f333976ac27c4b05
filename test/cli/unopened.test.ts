// @module-tag slow
import { copyFile, readdir, rename, truncate, unlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inLake, places } from '../../src/lake/store/layout.ts'
import { Agent } from '../helpers/agent.ts'
import { listening } from '../helpers/listening.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

/* Views that are damaged or lost while servers run over them: whoever asks is refused in one line that names no path. */

const { root: folder } = lakeOfFile(hundredFetchedDays)
let server: Awaited<ReturnType<typeof listening>>
let agent: Agent
beforeAll(async () => {
  server = await listening(folder, ['serve'])
  agent = await Agent.at(folder)
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await server.stop()
})

const asOf = '2024-03-01'
const unopened =
  'the lake: expected views that can be opened, got none; whoever runs the server finds the reason on its stderr, and by pitlake doctor'
const database = (): string => inLake(folder, places.database)
const script = (): string => inLake(folder, places.script)
const manifest = (): string => inLake(folder, places.manifest)

/** What happens to the lake, with the file that is put back afterwards. */
const damages: readonly (readonly [string, () => string, (path: string) => Promise<void>])[] = [
  ['lake.duckdb is missing', database, unlink],
  ['lake.duckdb is cut off', database, async (path) => await truncate(path, 5000)],
  ['lake.duckdb is no database', database, async (path) => await writeFile(path, 'x'.repeat(20_000))],
  ['lake.sql is missing', script, unlink],
  ['lake.sql is cut off', script, async (path) => await truncate(path, 3000)],
]

async function answers(): Promise<readonly (readonly [status: number, line: string])[]> {
  const answer = await fetch(`${server.url}/query?as_of=${asOf}`, { method: 'POST', body: 'SELECT 1 AS n' })
  const panel = await fetch(`${server.url}/panel?calendar=2024-02-01,2024-02-02,1d&assets=BTC&metrics=price_usd`)
  const { text, refused } = await agent.ask('query', { sql: 'SELECT 1 AS n', as_of: asOf })
  const told = [[answer.status, await answer.text()] as const, [panel.status, await panel.text()] as const]
  return [...told, [refused ? 500 : 200, `${text}\n`]]
}

/** Does something to a file of the lake, and puts it back. */
async function whileDamaged(path: string, damage: (path: string) => Promise<void>, work: () => Promise<void>) {
  const aside = join(folder, '..', 'aside')
  await copyFile(path, aside)
  try {
    await damage(path)
    await work()
  } finally {
    await rename(aside, path)
  }
}

test.each(damages)(
  '%s: HTTP and MCP refuse in one line without a path, and answer once it is back',
  async (...given) => {
    const [, path, damage] = given
    await whileDamaged(path(), damage, async () => {
      expect(await answers()).toEqual([
        [500, `${unopened}\n`],
        [500, `${unopened}\n`],
        [500, `${unopened}\n`],
      ])
    })
    expect((await answers()).map(([status]) => status)).toEqual([200, 200, 200])
  },
)

test.each([
  ['torn', '{"schema_version": 2, '],
  ['of other fields', '{"schema_version": 2}'],
  ['no JSON', '\u0000'],
])('a manifest that is %s: HTTP and MCP answer from the views', async (_, text) => {
  await whileDamaged(
    manifest(),
    async (path) => await writeFile(path, text),
    async () => {
      // Views of another time are opened again.
      const now = new Date()
      await utimes(database(), now, now)
      const told = await answers()
      expect(told.map(([status]) => status)).toEqual([200, 200, 200])
      expect(JSON.stringify(told)).not.toContain(folder)
    },
  )
})

test('a file of points that is cut off: HTTP and MCP refuse in one line without a path', async () => {
  const files = await readdir(join(folder, 'points'), { recursive: true })
  const path = join(folder, 'points', files.find((name) => name.endsWith('.parquet')) ?? '')
  await whileDamaged(
    path,
    async (file) => await truncate(file, 100),
    async () => {
      const now = new Date()
      await utimes(database(), now, now)
      expect((await answers())[0]).toEqual([500, `${unopened}\n`])
      expect((await answers())[2]).toEqual([500, `${unopened}\n`])
    },
  )
})
