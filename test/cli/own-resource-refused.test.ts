import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Catalogue } from '../../src/catalog/catalogue.ts'
import { refuseClashes } from '../../src/query/views/column-clashes.ts'
import { pitlake } from '../helpers/command.ts'
import { funds } from '../helpers/funds.ts'
import { inFolder, temporaryFolder } from '../helpers/folders.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'

test('a resource that cannot work is refused with its file and line, by every command', async () => {
  using kept = temporaryFolder('refused')
  const folder = kept.path
  const check = async (text: string): Promise<string> => {
    writeFileSync(join(folder, 'mine.yaml'), text)
    const { code, message } = await pitlake(folder, ['catalog', 'check', 'mine.yaml'])
    expect(code).toBe(2)
    return message.replaceAll(`${folder}/`, '')
  }
  const own = (...changes: readonly (readonly [string, string])[]): string =>
    changes.reduce((text, [from, to]) => text.replace(from, to), `resources:${funds}`)
  expect(await check(own(['  funds:', '  points:']))).toMatch(/^mine.yaml:2: resources.points: .*got points$/)
  expect(await check(own(['  funds:', '  calendar:']))).toMatch(/^mine.yaml:2: .*got calendar$/)
  expect(await check(own(['fees: fees', 'fees: snapshots']))).toMatch(/^mine.yaml:2: .*got snapshots$/)
  expect(await check(own(['  funds:', '  Funds; DROP:']))).toMatch(/^mine.yaml:2: .*a name of small letters/)
  expect(await check(own(['name:', 'valid_to:']))).toMatch(
    /^mine.yaml:7: resources.funds.fields.valid_to: .*got valid_to$/,
  )
  expect(await check(own(['name:', 'hash:']))).toMatch(/^mine.yaml:7: .*got hash$/)
  expect(await check(own(['name:', 'domicile_reason:']))).toMatch(/^mine.yaml:9: .*got domicile_reason$/)
  expect(await check(own(['kind: answer', 'kind: number']))).toMatch(/^mine.yaml:9: .*one of text, answer, reference/)
  expect(await check(own(['to: issuers', 'to: nowhere']))).toMatch(/^mine.yaml:8: .*a resource \(.*got nowhere$/)
  expect(await check(own(['kind: text', 'kind: text, values: sizes']))).toMatch(/^mine.yaml:7: .*got sizes$/)
  expect(await check(own(['fees: fees', 'assets: assets']))).toMatch(/^mine.yaml:10: .*got the resource assets$/)
  expect(await check(own(['entity: fund', 'entity: issuer']))).toMatch(/^mine.yaml:2: .*issuer, .*registry.yaml:\d+$/)
  expect(await check(own(['path: /funds', 'path: /changes']))).toMatch(
    /^mine.yaml:2: .*\/changes, .*the registry itself$/,
  )
  // One of the program's own, written again: which of the two holds is no matter of the order of files.
  expect(await check(own(['  funds:', '  products:']))).toMatch(/^mine.yaml:2: .*products, .*registry.yaml:\d+$/m)
  expect(await pitlake(folder, ['catalog', 'check'])).toMatchObject({ code: 0 })
  writeFileSync(join(folder, 'mine.yaml'), own(['  funds:', '  select:']))
  expect(await pitlake(folder, ['catalog', 'check', 'mine.yaml'])).toMatchObject({ code: 0 })
  writeFileSync(join(folder, 'mine.yaml'), own(['name:', 'op:']))
  writeFileSync(join(folder, 'pitlake.yaml'), 'catalogs: [mine.yaml]\n')
  expect((await pitlake(folder, ['plan'])).message).toMatch(/mine.yaml:7: .*got op$/)
})

test('a catalogue without a field that a view reads by its name is refused; without all others the views are made', async () => {
  // So the commands look only where a user's files stand beside it.
  expect(() => refuseClashes(catalogue)).not.toThrow()
  let resources = catalogue.resources
  const without = (name: string, field: string): Catalogue => {
    const resource = resources.get(name)
    if (!resource) throw new Error(name)
    const { [field]: _, ...fields } = resource.fields
    return { ...catalogue, resources: new Map([...resources, [name, { ...resource, fields }]]) }
  }
  expect(() => refuseClashes(without('products', 'symbol'))).toThrow(
    /^catalog\/registry.yaml:\d+: resources.products: expected the field symbol, which \d\d_\w+.sql reads, got none$/m,
  )
  const kept: string[] = []
  for (const [name, { fields }] of catalogue.resources)
    for (const field of Object.keys(fields))
      try {
        const fewer = without(name, field)
        refuseClashes(fewer)
        resources = fewer.resources
      } catch {
        kept.push(`${name}.${field}`)
      }
  expect(kept).toContain('deployments.verification_status')
  expect(kept).not.toContain('issuers.custodian')
  await inFolder(async (root) => {
    await makeLake(root, [{ at: '2024-01-01' }])
    expect(await makeViews(root, { catalogue: { ...catalogue, resources } })).toMatchObject({ made: true })
  })
})
