import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { quarantineBody } from '../../src/lake/store/quarantine.ts'
import type { RequestRow } from '../../src/lake/ledger/entry.ts'
import { inFolder } from '../helpers/folders.ts'
import { each, jsonEscape, leaks } from '../helpers/spellings.ts'

const key = 'sk-quarantined_0123456789'
const digits = '1234567890123'
const cut = 4_000_000
const request = { id: 'run-1', path: '/x', query: {}, asked_at: 1, bytes: 5 } as RequestRow

/** What the quarantine makes of a body. */
async function aside(body: string): Promise<string> {
  let text = ''
  await inFolder(async (root) => {
    mkdirSync(join(root, 'spool'))
    const file = join(root, 'spool', 'body.json')
    writeFileSync(file, body)
    await quarantineBody(root, { file }, request, 'poison', [key, digits])
    text = readFileSync(join(root, 'quarantine', 'run-1.body'), 'latin1')
    expect(readdirSync(join(root, 'quarantine')).toSorted()).toEqual(['run-1.body', 'run-1.json'])
    expect(readdirSync(join(root, 'spool'))).toEqual(['body.json'])
    expect(statSync(join(root, 'quarantine', 'run-1.body')).mode & 0o777).toBe(0o600)
  })
  return text
}

test.each([1, 8, 60, 149])(
  'a key that the cut would part is replaced before it, %i bytes of it in front',
  async (before) => {
    const spelt = each(key, [1], jsonEscape)
    const text = await aside(`${'x'.repeat(cut - before)}${spelt}${'y'.repeat(1000)}`)
    expect(text.length).toBeLessThanOrEqual(cut)
    expect(text).toMatch(/x(?:\[|\[k|\[ke|\[key|\[key\]y*)$/)
    expect(leaks(text, key)).toBe(false)
  },
)

test('an unreadable body is no data: a key of digits is replaced in its numbers, too', async () => {
  expect(await aside(`[{"t":${digits},"v":"x${digits}`)).toBe('[{"t":[key],"v":"x[key]')
})
