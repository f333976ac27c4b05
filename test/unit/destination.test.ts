import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import type { Destination } from '../../src/maintenance/publish/destination.ts'
import { destinationOf } from '../../src/maintenance/publish/s3.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { powerDisk } from '../helpers/power.ts'
import { freshFolder } from '../helpers/scratch.ts'

let home = ''
const opened = (mark: string, disk = realDisk): Destination => destinationOf(join(home, 'out'), { disk, mark })

freshFolder('destination', (path) => (home = path))

test('of several writers that create one file one wins, and its bytes stay', async () => {
  const writers = Array.from({ length: 8 }, (_, i) => opened(`w${i}`))
  const ends = await Promise.all(writers.map(async (to, i) => await to.create('log/0.json', `{"by":${i}}\n`)))
  expect(ends.filter((end) => end === 'created')).toHaveLength(1)
  const kept = (await opened('r').read('log/0.json'))?.toString()
  expect(kept).toBe(`{"by":${ends.indexOf('created')}}\n`)
  expect(readdirSync(join(home, 'out/log'))).toEqual(['0.json'])
})

test('a data file is there whole, and listed with its size at any depth', async () => {
  const to = opened('a')
  writeFileSync(join(home, 'local'), 'data')
  await to.put('t/group=x/one.parquet', join(home, 'local'))
  await to.replace('t/hint', 'old')
  await to.replace('t/hint', 'new')
  const files = await to.list('t')
  expect(files.map(({ path, bytes }) => `${path} ${bytes}`).toSorted()).toEqual(['t/group=x/one.parquet 4', 't/hint 3'])
  expect(readFileSync(join(home, 'out/t/hint'), 'utf8')).toBe('new')
  await to.remove('t/hint')
  await to.remove('t/hint')
  expect(await to.read('t/hint')).toBeUndefined()
  expect(await to.read('t/group=x')).toBeUndefined()
  expect(await to.list('nowhere')).toEqual([])
})

test('when the power goes after the last step nothing is lost, at any step before nothing is half there', async () => {
  const act = async (to: Destination): Promise<void> => {
    writeFileSync(join(home, 'local'), 'data')
    await to.put('t/one.parquet', join(home, 'local'))
    await to.create('t/log/0.json', 'whole')
  }
  const whole = powerDisk()
  await act(opened('a', whole))
  whole.survivors(join(home, 'out'), join(home, 'kept'))
  expect(readFileSync(join(home, 'kept/t/log/0.json'), 'utf8')).toBe('whole')
  expect(readFileSync(join(home, 'kept/t/one.parquet'), 'utf8')).toBe('data')
  let survived = 0
  for (let step = 1; step <= whole.steps(); step++) {
    rmSync(join(home, 'out'), { recursive: true })
    rmSync(join(home, 'kept'), { recursive: true, force: true })
    mkdirSync(join(home, 'out'))
    const dying = powerDisk(step)
    await act(opened('a', dying)).catch(() => undefined)
    dying.survivors(join(home, 'out'), join(home, 'kept'))
    for (const file of readdirSync(join(home, 'kept'), { recursive: true, withFileTypes: true })) {
      if (!file.isFile() || file.name.startsWith('.tmp-')) continue
      const text = readFileSync(join(file.parentPath, file.name), 'utf8')
      survived++
      expect(text).toBe(file.name === '0.json' ? 'whole' : 'data')
      if (file.name === '0.json')
        expect(readFileSync(join(dirname(file.parentPath), 'one.parquet'), 'utf8')).toBe('data')
    }
  }
  expect(survived).toBeGreaterThan(2)
})

test.each(['', 'gs://bucket/x', 'https://host/x'])('%j is refused as a destination', (text) => {
  expect(() => destinationOf(text, { disk: realDisk, mark: 'a' })).toThrow(/expected a folder or s3:\/\//)
})
