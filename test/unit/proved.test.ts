import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { realDisk } from '../../src/lake/store/disk.ts'
import { firstChanged, noteProved } from '../../src/query/views/manifest.ts'
import { test } from '../helpers/lake-test.ts'

const checksum = (text: string): string => createHash('sha256').update(text).digest('hex')
const known = (path: string, text: string) => ({ path, bytes: text.length, checksum: checksum(text) })

test('a file counts as read until it is touched; a missing or replaced one does not', async ({ root }) => {
  mkdirSync(join(root, 'exports'))
  const files = ['one', 'two', 'six'].map((text) => known(`${text}.parquet`, text))
  for (const [n, text] of ['one', 'two', 'six'].entries()) writeFileSync(join(root, files[n]?.path ?? ''), text)
  const note = async (given = files): Promise<string[]> => {
    await noteProved(root, given, realDisk, 'm')
    return Object.keys(JSON.parse(readFileSync(join(root, 'exports/proved.json'), 'utf8')) as object)
  }
  const changed = async (most = 1000) => (await firstChanged(root, files, most))?.path
  expect(await note()).toEqual(['one.parquet', 'two.parquet', 'six.parquet'])
  expect(await changed()).toBeUndefined()
  // What was proved and not touched is not read again, whatever it should be now.
  expect(await note(files.map((file) => ({ ...file, checksum: 'another' })))).toHaveLength(3)
  // Its time is set, too: clocks of file systems stand still for some milliseconds.
  const rewrite = (text: string, at: number): void => {
    writeFileSync(join(root, 'two.parquet'), text)
    utimesSync(join(root, 'two.parquet'), at, at)
  }
  rewrite('owt', 1000)
  expect(await changed()).toBe('two.parquet')
  // Beyond so many bytes the size must do.
  expect(await changed(2)).toBeUndefined()
  rmSync(join(root, 'six.parquet'))
  expect(await note()).toEqual(['one.parquet'])
  expect(await changed()).toBe('two.parquet')
  rewrite('two', 2000)
  expect(await note()).toEqual(['one.parquet', 'two.parquet'])
})
