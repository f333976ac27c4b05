// @module-tag full
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import type { Ended } from '../helpers/command.ts'
import { funds } from '../helpers/funds.ts'
import { registryKey, withRegistryRig } from '../helpers/registry-rig.ts'
import { refused, SmallRegistry } from '../helpers/small-registry.ts'
import { temporaryFolder } from '../helpers/folders.ts'
import type * as command from '../helpers/command.ts'

const timeout = 300_000
const project = fileURLToPath(new URL('../..', import.meta.url))

interface Desk {
  readonly small: SmallRegistry
  readonly root: string
  pitlake(...argv: readonly string[]): Promise<Ended>
  json(...argv: readonly string[]): Promise<Record<string, unknown>>
  rows(query: string): Promise<unknown>
}

/**
 * A copy of the program in which nothing but `catalog/` is another: one resource more, and two fields by other names.
 */
async function withCatalogue(work: (desk: Desk) => Promise<void>): Promise<void> {
  using copyFolder = temporaryFolder('catalogue')
  const copy = copyFolder.path
  for (const part of ['src', 'catalog', 'test/helpers/command.ts', 'test/helpers/leaping.ts', 'package.json'])
    cpSync(join(project, part), join(copy, part), { recursive: true })
  symlinkSync(join(project, 'node_modules'), join(copy, 'node_modules'))
  const file = join(copy, 'catalog/registry.yaml')
  const text = readFileSync(file, 'utf8')
    .replace('regulator: { kind: answer }', 'supervisor: { kind: answer, keys: [regulator] }')
    .replace(/(venues:[\s\S]*?)name: \{ kind: text \}/, '$1title: { kind: text, keys: [name] }')
  expect(text).toMatch(/supervisor[\s\S]*title: \{ kind: text, keys/)
  writeFileSync(file, `${text}${funds}`)
  const { pitlake: run } = (await import(pathToFileURL(join(copy, 'test/helpers/command.ts')).href)) as typeof command
  const small = new SmallRegistry({ funds: 'fund' })
  small.world.put('venues', 'v0', { name: 'Venue 0', venue_type: 'cex' })
  small.world.put('issuers', 'i0', { name: 'Issuer 0', regulator: 'None (a foundation)' })
  for (let n = 0; n < 3; n++)
    small.world.put('funds', `f${n}`, {
      name: `Fund ${n}`,
      manager: `i${n}`,
      domicile: null,
      fees: [{ percent: n }],
      lots: [n],
    })
  await withRegistryRig(
    Date.now() / 1000,
    async ({ root, url }) => {
      const env = { PITLAKE_REGISTRY_URL: url, PITLAKE_REGISTRY_KEY: registryKey, PITLAKE_DATA: root }
      const inCopy: Desk['pitlake'] = async (...argv) => await run(copy, argv, env)
      const document = async (...argv: readonly string[]): Promise<unknown> => {
        const { code, out, message } = await inCopy(...argv)
        expect({ code, message }).toEqual({ code: 0, message: '' })
        return JSON.parse(out)
      }
      await work({
        small,
        root,
        pitlake: inCopy,
        json: async (...argv) => (await document(...argv, '--json')) as Record<string, unknown>,
        rows: async (query) => {
          const out = join(copy, 'rows.json')
          expect(await inCopy('sql', '--format', 'json', '--out', out, query)).toMatchObject({ code: 0, message: '' })
          return JSON.parse(readFileSync(out, 'utf8'))
        },
      })
    },
    { instead: small.answer },
  )
}

test(
  'a resource more and a field renamed in the catalogue’s folder: all that the registry does',
  { timeout },
  async () =>
    withCatalogue(async ({ small, root, pitlake, json, rows }) => {
      expect((await pitlake('catalog', 'check')).out).toContain('7 registry resources')
      expect(await json('registry', 'snapshot')).toMatchObject({ records: { funds: 3, fees: 3, issuers: 30 } })
      small.world.put('funds', 'f1', { name: 'Fund 1', manager_id: { id: 'i7' }, domicile: 'not disclosed', fees: [] })
      small.world.put('funds', 'f2', null)
      expect(await json('registry', 'sync')).toMatchObject({ updated: 1, closed: 1, records: { funds: 2, fees: 1 } })

      const typed = 'SELECT id, name, manager_id, domicile_answer FROM'
      const now = [
        { id: 'f0', name: 'Fund 0', manager_id: 'i0', domicile_answer: 'not_established' },
        { id: 'f1', name: 'Fund 1', manager_id: 'i7', domicile_answer: 'not_disclosed' },
      ]
      expect(await rows(`${typed} funds ORDER BY id`)).toEqual(now)
      const before = await rows(`${typed} snapshots.funds ORDER BY id`)
      expect(before).toMatchObject([
        now[0],
        { id: 'f1', manager_id: 'i1', domicile_answer: 'not_established' },
        { id: 'f2' },
      ])
      expect(
        await rows(`SELECT id, op, closed_by, isfinite(valid_to) AS ended FROM history.funds ORDER BY id, valid_from`),
      ).toEqual([
        { id: 'f0', op: 'snapshot', closed_by: null, ended: false },
        { id: 'f1', op: 'snapshot', closed_by: 'updated', ended: true },
        { id: 'f1', op: 'updated', closed_by: null, ended: false },
        { id: 'f2', op: 'snapshot', closed_by: 'deleted', ended: true },
      ])
      expect(await rows('SELECT parent_type, parent_id, ordinal, record FROM fees')).toEqual([
        { parent_type: 'fund', parent_id: 'f0', ordinal: 0, record: '{"percent":0}' },
      ])
      expect(
        await rows('SELECT record FROM "order" UNION ALL SELECT record FROM snapshots."order" ORDER BY 1'),
      ).toHaveLength(4)
      expect(await rows(`SELECT title FROM venues`)).toEqual([{ title: 'Venue 0' }])
      expect(await rows(`SELECT supervisor_answer, supervisor_reason FROM history.issuers WHERE id = 'i0'`)).toEqual([
        { supervisor_answer: 'none', supervisor_reason: 'a foundation' },
      ])
      expect(await rows('SELECT count(*)::INTEGER AS n FROM universe')).toEqual([{ n: 20 }])

      const status = await json('registry', 'status', '--offline')
      expect(status).toMatchObject({ records: { funds: 2, fees: 1 }, versions: { funds: 4, fees: 3 } })
      expect(status['events']).toContainEqual({ type: 'fund', known: true, op: 'deleted', events: 1 })
      expect((await json('status'))['registry']).toMatchObject({ records: { funds: 2 } })
      expect((await pitlake('sql', '--as-of', '2020-01-01', 'FROM funds')).notes).toContain('the registry is not known')

      const [event] = (await rows('SELECT CAST(max(valid_from) AS VARCHAR) AS at FROM history.funds')) as [
        { at: string },
      ]
      // A count that looks one second ahead, seen only within the second before an event, by thousands of decisions.
      const query = `SELECT ts, (SELECT count(*) FROM history.funds WHERE valid_from <= ts + INTERVAL 1 SECOND) AS n
      FROM (SELECT make_timestamptz(epoch_us(TIMESTAMPTZ '${event.at}') + i * 500000) AS ts FROM range(-4000, 10) AS r (i))`
      const file = join(root, 'funds.sql')
      writeFileSync(file, query)
      const { code, out } = await pitlake('lookahead', file, '--cutoffs', '20', '--json')
      expect({ code, ...(JSON.parse(out) as object) }).toMatchObject({ code: 4, verdict: 'leak' })

      // Lost with all that stood there, its files are made again from the bodies of the polls.
      rmSync(join(root, 'registry/history.funds'), { recursive: true })
      expect(await pitlake('doctor')).toMatchObject({ code: 4 })
      expect(await pitlake('doctor', '--repair')).toMatchObject({ code: 0 })
      expect(await rows(`${typed} funds ORDER BY id`)).toEqual(now)

      // The lists, where the snapshot is refused, and everything that rewrites files or looks at them.
      small.broken.set('/snapshot', refused(429, 'snapshot_limit', { 'retry-after': '3600' }))
      expect(await json('registry', 'snapshot')).toMatchObject({ source: 'lists', updated: 0, closed: 0 })
      expect(small.asked).toContain('/funds')
      await pitlake('compact')
      expect(await json('doctor')).toMatchObject({ ok: true })
      for (const lost of ['journal', 'ledger.sqlite']) rmSync(join(root, lost), { recursive: true })
      expect(await pitlake('doctor', '--adopt')).toMatchObject({ code: 0 })
      expect(await rows(`${typed} funds ORDER BY id`)).toEqual(now)
    }),
)
