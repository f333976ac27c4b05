import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const folder = join(import.meta.dirname, '../../notebooks')
const names = readdirSync(folder).filter((name) => name.endsWith('.ipynb'))

/** What nbformat 4.5 asks of a notebook, and that nothing was left in it by a run. */
const notebookSchema = z.object({
  nbformat: z.literal(4),
  nbformat_minor: z.number().min(5),
  metadata: z.object({ kernelspec: z.object({ name: z.literal('python3') }) }),
  cells: z.array(
    z.discriminatedUnion('cell_type', [
      z.strictObject({
        cell_type: z.literal('markdown'),
        id: z.string().regex(/^[\w-]{1,64}$/),
        metadata: z.strictObject({}),
        source: z.array(z.string()),
      }),
      z.strictObject({
        cell_type: z.literal('code'),
        id: z.string().regex(/^[\w-]{1,64}$/),
        metadata: z.strictObject({}),
        source: z.array(z.string()),
        outputs: z.tuple([]),
        execution_count: z.null(),
      }),
    ]),
  ),
})

const read = (name: string) => notebookSchema.parse(JSON.parse(readFileSync(join(folder, name), 'utf8')))

describe('notebooks', () => {
  it('are eight, in the order in which they are read', () => {
    expect(names.toSorted().map((name) => name.slice(0, 3))).toEqual([
      '01-',
      '02-',
      '03-',
      '04-',
      '05-',
      '06-',
      '07-',
      '08-',
    ])
  })

  it.each(names)('%s is valid, without outputs, each cell with an id of its own', (name) => {
    const { cells } = read(name)
    expect(new Set(cells.map(({ id }) => id)).size).toBe(cells.length)
    expect(cells[0]?.cell_type).toBe('markdown')
    expect(cells[0]?.source[0]).toMatch(/^# \S/)
  })

  it.each(names)('%s draws at least two titled pictures, tells a story and asserts its claims', (name) => {
    const { cells } = read(name)
    const code = cells.filter(({ cell_type }) => cell_type === 'code').map(({ source }) => source.join(''))
    const prose = cells.filter(({ cell_type }) => cell_type === 'markdown').flatMap(({ source }) => source)
    const drawn = code.filter((text) => text.includes('picture('))
    expect(drawn.length).toBeGreaterThanOrEqual(2)
    for (const text of drawn) expect(text).toMatch(/set_title\(|suptitle\(/)
    expect(code.join('\n').match(/^assert /gm)?.length ?? 0).toBeGreaterThanOrEqual(3)
    expect(prose.join('').split(/\s+/).length).toBeGreaterThan(120)
    expect(prose.join('')).toMatch(/synthetic|invented|simulated/)
  })

  it('find the lake by the environment and read it through one helper', () => {
    for (const name of names) {
      const code = read(name).cells.flatMap(({ cell_type, source }) => (cell_type === 'code' ? source : []))
      expect(code.join('')).toContain('from lake import')
      expect(code.join('')).not.toMatch(/duckdb\.connect|\/home\//)
    }
  })

  it('have every Python package pinned', () => {
    const lines = readFileSync(join(folder, 'requirements.txt'), 'utf8').trim().split('\n')
    const named = lines.filter((line) => !/^ +--hash=sha256:[0-9a-f]{64}( \\)?$/.test(line))
    for (const line of named) expect(line).toMatch(/^[\w.-]+==[\w.]+( ; [\w =!<>'".]+)? \\$/)
    expect(named).toContain('duckdb==1.5.6 \\')
  })
})
