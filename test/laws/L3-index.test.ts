// @module-tag full
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { withLake } from '../../src/lake/ledger/job.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { pitlake } from '../helpers/command.ts'
import { type Rig, withRig } from '../helpers/fetching.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { need } from '../helpers/needs.ts'

const now = Date.UTC(2024, 5, 5, 12) / 1000
const selection = { assets: ['BTC'], paths: ['blockchain/block_height_pit'], since: now - 40 * 86_400 }
const more = { ...selection, assets: ['BTC', 'ETH'] }

/** Every Parquet file of points that stands in its place. */
const standing = (root: string): string[] => globSync('points/**/*.parquet', { cwd: root }).toSorted()
const told = async (root: string, ...argv: string[]) => await pitlake(root, [...argv, '--data', root])

/** Takes rows away behind the back of the journal. */
function strike(root: string, sql: string): void {
  const database = new DatabaseSync(join(root, 'ledger.sqlite'))
  database.exec(sql)
  database.close()
}

async function filled(rig: Rig): Promise<string[]> {
  await rig.fetch(selection)
  expect(await told(rig.root, 'views')).toMatchObject({ code: 0 })
  return standing(rig.root)
}

const harms = {
  'a row is gone': `DELETE FROM files WHERE tbl = 'points'`,
  'a row counts as removed': `UPDATE files SET removed_version = added_version WHERE tbl = 'points'`,
  'a row names another file': `UPDATE files SET path = replace(path, '.parquet', 'x.parquet') WHERE tbl = 'points'`,
}

test('L3: an index that misses a row is refused by whatever would answer by it, and the journal mends it', async () =>
  await withRig(now, async (rig) => {
    const files = await filled(rig)
    const points = await rig.stored()
    for (const [harm, sql] of Object.entries(harms)) {
      strike(rig.root, sql)
      const words = expect.stringMatching(/ledger\.sqlite does not list .* journal names.*doctor --rebuild-ledger/s)
      for (const argv of [['views'], ['status', '--check'], ['vacuum', '--yes']])
        expect(await told(rig.root, ...argv), `${harm}: ${argv.join(' ')}`).toMatchObject({ code: 4, message: words })
      await expect(rig.fetch(more), harm).rejects.toMatchObject({ kind: 'integrity', message: words })
      expect(standing(rig.root)).toEqual(files)
      expect(await told(rig.root, 'doctor')).toMatchObject({ code: 4, out: expect.stringContaining('ledger.sqlite') })
      expect(await told(rig.root, 'doctor', '--rebuild-ledger')).toMatchObject({ code: 0 })
      expect(await rig.stored()).toEqual(points)
    }
    expect((await rig.fetch(more)).points_added).toBeGreaterThan(0)
    expect(standing(rig.root)).toEqual(expect.arrayContaining(files))
  }))

test('L3: no checkpoint is folded from such an index', async () =>
  await withRig(now, async (rig) => {
    await filled(rig)
    strike(rig.root, harms['a row is gone'])
    rmSync(join(rig.root, 'journal/0000000001.json.gz'))
    await told(rig.root, 'doctor', '--repair')
    expect(globSync('journal/*.checkpoint.jsonl', { cwd: rig.root })).toEqual([])
  }))

test('L3: sweep consults the journal, and swept files can be put back for a week', async () =>
  await withRig(now, async (rig) => {
    const [file = ''] = await filled(rig)
    const orphan = file.replace(/[^/]+$/, '0000000001-left.parquet')
    cpSync(join(rig.root, file), join(rig.root, orphan))
    const sweepAt = async (day: number): Promise<void> =>
      await withLake({ root: rig.root, name: 'try' }, commitDeps({ nowMicros: () => (now + day * 86_400) * 1e6 }), () =>
        Promise.resolve({ value: undefined, stopped_by: null, error: null }),
      )
    const swept = (): string[] => globSync('swept/**/*.parquet', { cwd: rig.root })
    await sweepAt(0)
    expect(existsSync(join(rig.root, orphan))).toBe(false)
    expect(swept()).toEqual([`swept/20240605t120000000z/${orphan}`])
    expect(readFileSync(join(rig.root, swept()[0] ?? ''))).toEqual(readFileSync(join(rig.root, file)))
    await sweepAt(6.9)
    expect(swept()).toHaveLength(1)
    await sweepAt(7.1)
    expect(swept()).toEqual([])
    expect(standing(rig.root)).toContain(file)
    // Where the journal cannot be followed nothing is known to be left over.
    cpSync(join(rig.root, file), join(rig.root, orphan))
    using ledger = await Ledger.open(rig.root)
    if (ledger.head().version > 1) rmSync(join(rig.root, 'journal/0000000001.json.gz'))
    await sweepAt(8)
    expect(existsSync(join(rig.root, orphan))).toBe(ledger.head().version > 1)
  }))

test('a link in place of points/ is reported by doctor, status and sql, and none of them advises `views`', async () =>
  await withRig(now, async (rig) => {
    await filled(rig)
    const away = `${rig.root}-away`
    renameSync(join(rig.root, 'points'), away)
    symlinkSync(away, join(rig.root, 'points'))
    try {
      const doctor = await told(rig.root, 'doctor')
      expect(doctor).toMatchObject({
        code: 4,
        message: expect.stringMatching(/points: a link that leads out.*in place/s),
      })
      expect(doctor.out.match(/a link that leads/g)).toHaveLength(1)
      expect(await told(rig.root, 'sql', 'FROM points')).toMatchObject({
        code: 4,
        message: expect.stringMatching(/expected the file itself.*got a link at points.*doctor/s),
      })
      expect(await told(rig.root, 'status', '--check')).toMatchObject({ code: 4 })
      expect(await told(rig.root, 'doctor', '--repair', '--forget-lost')).toMatchObject({ code: 4 })
      rmSync(join(rig.root, 'points'))
      renameSync(away, join(rig.root, 'points'))
      expect(await told(rig.root, 'doctor')).toMatchObject({ code: 0 })
      expect(await told(rig.root, 'sql', 'SELECT count(*) FROM points')).toMatchObject({ code: 0 })
    } finally {
      rmSync(away, { recursive: true, force: true })
    }
  }))

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

test('a folder or file without rights is reported as unreadable and neither moved, vacuumed nor lost', async (context) =>
  await withRig(now, async (rig) => {
    need(context, 'nobody')
    await filled(rig)
    const nobody = (...argv: string[]) => {
      const env = { PATH: process.env['PATH'] ?? '', HOME: rig.root }
      const ran = spawnSync(process.execPath, [main, ...argv, '--data', rig.root], {
        uid: 65_534,
        env,
        cwd: '/',
        encoding: 'utf8',
      })
      return { code: ran.status, text: `${ran.stdout}${ran.stderr}` }
    }
    chmodSync(rig.root, 0o777)
    mkdirSync(join(rig.root, 'spool'), { recursive: true })
    spawnSync('chmod', ['-R', 'a+rwX', rig.root])
    expect(nobody('doctor').code).toBe(0)
    const [file = ''] = standing(rig.root)
    using ledger = await Ledger.open(rig.root)
    const { length } = liveFiles(ledger, { table: 'points' })
    for (const place of ['points', file]) {
      chmodSync(join(rig.root, place), 0o000)
      const asked = nobody('sql', 'FROM points')
      expect(asked).toMatchObject({ code: 4, text: expect.stringMatching(/right to read|permission denied/) })
      expect(asked.text).not.toMatch(/moved|vacuumed|pitlake views/)
      const found = nobody('doctor')
      expect(found).toMatchObject({ code: 4, text: expect.stringMatching(/permission denied.*give this user/s) })
      expect(found.text).not.toMatch(/not there|forget-lost/)
      chmodSync(join(rig.root, place), 0o777)
    }
    expect(nobody('doctor').code).toBe(0)
    expect(length).toBeGreaterThan(0)
  }))
