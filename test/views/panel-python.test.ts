// @module-tag full
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { need } from '../helpers/needs.ts'
import { plain, point, threeDays } from '../helpers/lakes/three-days.ts'

const project = join(import.meta.dirname, '../..')

test('panels in Python: columns, frames, options, and words where an answer is empty', async (context) => {
  const python = need(context, 'peers')
  const { root, remove } = await threeDays((day) => [point(plain, day, day === 3 ? {} : { v: day })])
  try {
    const said = execFileSync(python, ['test/python/panels.py'], {
      cwd: project,
      encoding: 'utf8',
      env: { ...process.env, PITLAKE_DATA: root, PYTHONDONTWRITEBYTECODE: '1' },
    })
    expect(said.trim().split('\n').at(-1)).toBe('all')
  } finally {
    await remove()
  }
})
