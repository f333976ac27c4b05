// @module-tag full
import { existsSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkViews } from '../../src/maintenance/upkeep/findings.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { entryFile, inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { openQuery } from '../../src/query/lake.ts'
import { inFolder } from '../helpers/folders.ts'
import { metrics, rewriteDeps, topUp } from '../helpers/lakes/top-ups.ts'
import { powerDisk } from '../helpers/power.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const unforced: Disk = { ...realDisk, sync: async () => undefined, syncFolder: async () => undefined }

describe('L3: a power cut', () => {
  test('a new lake is found again in folders that were made for it, or that a killed run left', async () => {
    for (const left of [false, true])
      await inFolder(async (root) => {
        const disk = powerDisk()
        const lake = join(root, 'a', 'b', 'lake')
        const ledger = await Ledger.open(lake)
        // A run that was killed before it forced anything to the disk leaves folders that are there all the same.
        if (left) await topUp(ledger, rewriteDeps({ disk: unforced }), { metric: metrics[0], since: 0, days: 10 })
        const { version } = ledger.head()
        await topUp(ledger, rewriteDeps({ disk }), { metric: metrics[0], since: 10, days: 10 })
        const own = liveFiles(ledger).filter(({ added_version }) => added_version > version)
        const files = own.map(({ path }) => path)
        expect(files).not.toEqual([])
        ledger.close()
        const found = join(root, 'found')
        disk.survivors(join(root, 'a'), found)
        for (const path of [entryFile(version + 1), ...files])
          expect(existsSync(inLake(join(found, 'b', 'lake'), path))).toBe(true)
      })
  })
})

/** What may become of bytes that were not forced. */
const tears: Readonly<Record<string, (path: string) => void>> = {
  cut: (path) => truncateSync(path, path.endsWith('.duckdb') ? 20_000 : 100),
  empty: (path) => truncateSync(path, 0),
  noise: (path) => writeFileSync(path, 'x'.repeat(300_000)),
}

describe('what a power cut may have torn', () => {
  test('a torn lake.duckdb or export is named, and the next build of the views repairs it', async () =>
    await inFolder(async (root) => {
      using ledger = await Ledger.open(root)
      await topUp(ledger, rewriteDeps(), { metric: metrics[0], since: 0, days: 10 })
      const made = async (): Promise<boolean> => (await buildViews(ledger, { catalogue, deps: rewriteDeps() })).made
      await made()
      for (const [how, tear] of Object.entries(tears)) {
        tear(join(root, 'lake.duckdb'))
        expect((await checkViews(ledger, root, false)).map(({ kind }) => kind)).toEqual(['views_torn'])
        await expect(openQuery(root)).rejects.toThrow(/pitlake views/)
        expect([how, await made(), await checkViews(ledger, root, true)]).toEqual([how, true, []])
        // What readers noted of their proofs is made anew without a word.
        const names = readdirSync(inLake(root, 'exports')).toSorted()
        for (const name of names) tear(join(inLake(root, 'exports'), name))
        const found = await checkViews(ledger, root, true)
        expect(new Set(found.map(({ kind }) => kind))).toEqual(new Set(['file_changed']))
        const exports = names.filter((name) => name.endsWith('.parquet'))
        expect(found.map(({ path }) => path.slice('exports/'.length)).toSorted()).toEqual(exports)
        await made()
        expect(await checkViews(ledger, root, true)).toEqual([])
        using session = await openQuery(root)
        for (const view of ['points', 'requests', 'runs', 'versions', 'coverage', 'endpoints'])
          await session.rows(`SELECT count(*) AS n FROM ${view}`)
      }
    }))
})
