import { afterAll, beforeAll, expect, test } from 'vitest'
import { day } from '../../src/base/time.ts'
import { at, convert, Converting, daily, lag600, micros, t1 } from '../helpers/converting.ts'
import { randomOf } from '../helpers/random.ts'

let made: Converting
beforeAll(async () => {
  made = await Converting.open()
})
afterAll(() => made.close())

interface Offered {
  readonly t: number
  readonly v: number | null
  readonly computed_at?: number
}

/** Answers in the order of their commits: what each stored, as `day v available observed basis rule`. */
async function story(
  answers: readonly (readonly Offered[])[],
  commits: readonly string[],
  over: { readonly told?: boolean; readonly prior?: boolean; readonly since?: number; readonly until?: number } = {},
) {
  const existing: string[] = []
  const told: { rows: string[]; result: Awaited<ReturnType<typeof convert>> }[] = []
  for (const [n, points] of answers.entries()) {
    const commit = commits[n] ?? ''
    const asked = { askedAt: at(commit), horizon: at(commit), since: over.since ?? null, until: over.until ?? null }
    const prior = over.prior === true && n > 0 ? [{ since: 0, until: 1e11, askedAt: at(commits[n - 1] ?? '') }] : []
    const body = await made.body(JSON.stringify(points), { ...asked, prior })
    const revisable = over.told === true ? 'told' : 'observed'
    const task = made.job([body], { revisable, existing, observedAt: BigInt(micros(commit)), rules: [lag600] })
    const result = await convert(made.engine, task)
    const rows = result.file === null ? [] : await made.stored(task.out)
    if (result.file !== null) existing.push(task.out)
    const known = (us: unknown): string => new Date(Number(us) / 1000).toISOString().slice(5, 19)
    told.push({
      result,
      rows: rows.map(
        (row) =>
          `${(Number(row['t']) / 1e6 - t1) / day} ${row['v'] as number} ${known(row['available_at'])} ${known(row['observed_at'])} ${row['basis'] as string} ${known(row['available_rule_at'])}`,
      ),
    })
  }
  return told
}

const first = '2024-03-10T12:00:00'
const second = '2024-03-11T12:00:00'
const third = '2024-03-12T12:00:00'

test('history is known from the download, a change from when it was seen, the same again is nothing', async () => {
  const [one, two, three, four] = await story(
    [
      daily(2),
      [
        { t: t1, v: 5 },
        { t: t1 + day, v: 1 },
      ],
      [{ t: t1, v: 5 }],
      [{ t: t1, v: 0 }],
    ],
    [first, second, third, '2024-03-13T12:00:00'],
  )
  expect(one?.rows).toEqual([
    '0 0 03-10T12:00:00 03-10T12:00:00 observed 03-02T00:10:00',
    '1 1 03-10T12:00:00 03-10T12:00:00 observed 03-03T00:10:00',
  ])
  expect(two?.rows).toEqual(['0 5 03-11T12:00:00 03-11T12:00:00 observed 03-11T12:00:00'])
  expect(two?.result).toMatchObject({ violations: [], bodies: [{ added: 1, vintages: 1, points: 2 }] })
  expect(three?.rows).toEqual([])
  expect(four?.rows).toEqual(['0 0 03-13T12:00:00 03-13T12:00:00 observed 03-13T12:00:00'])
  expect(one?.result.bodies[0]).toMatchObject({ added: 2, vintages: 0 })
})

test('computed_at dates a vintage only if it is later than the stored one, and is stored in any case', async () => {
  const was = at('2024-03-02T00:20:00')
  const [one, two, three] = await story(
    [
      [{ t: t1, v: 1, computed_at: was }],
      [{ t: t1, v: 2, computed_at: was }],
      [{ t: t1, v: 3, computed_at: at('2024-03-11T18:00:00') }],
    ],
    [first, second, third],
  )
  expect(one?.rows).toEqual(['0 1 03-02T00:20:00 03-10T12:00:00 provider 03-02T00:20:00'])
  expect(two?.rows).toEqual(['0 2 03-11T12:00:00 03-11T12:00:00 observed 03-11T12:00:00'])
  expect(three?.rows).toEqual(['0 3 03-11T18:00:00 03-12T12:00:00 provider 03-11T18:00:00'])
  // Later than the value that is held, but from before the lake saw that one: then it was not told.
  const meanwhile = { t: t1, v: 2, computed_at: at('2024-03-05T00:00:00') }
  const [, again] = await story([[{ t: t1, v: 1, computed_at: was }], [meanwhile]], [first, second])
  expect(again?.rows).toEqual(['0 2 03-11T12:00:00 03-11T12:00:00 observed 03-11T12:00:00'])
})

test('a late first value has no rule to stand in; a copy from before the last vintage says nothing', async () => {
  const late = await story([daily(1), daily(2)], [first, second], { prior: true })
  expect(late[1]?.rows).toEqual(['1 1 03-11T12:00:00 03-11T12:00:00 observed 03-11T12:00:00'])
  const existing: string[] = []
  for (const [v, commit, horizon] of [
    [1, first, first],
    [2, second, second],
    [1, third, first],
  ] as const) {
    const body = await made.body(JSON.stringify([{ t: t1, v }]), { askedAt: at(commit), horizon: at(horizon) })
    const task = made.job([body], {
      revisable: 'observed',
      existing: [...existing],
      observedAt: BigInt(micros(commit)),
    })
    const { file } = await convert(made.engine, task)
    if (file !== null) existing.push(task.out)
  }
  expect(existing).toHaveLength(2)
})

test('of two answers in one batch the one requested last counts', async () => {
  const held = made.job([await made.body(JSON.stringify(daily(1)))], {
    revisable: 'observed',
    observedAt: BigInt(micros(first)),
  })
  await convert(made.engine, held)
  const bodies = [
    await made.body(JSON.stringify([{ t: t1, v: 8 }])),
    await made.body(JSON.stringify([{ t: t1, v: 9 }])),
  ]
  const task = made.job(bodies, { revisable: 'observed', existing: [held.out] })
  await convert(made.engine, task)
  expect((await made.stored(task.out)).map(({ v }) => v)).toEqual([9])
})

test('a vanished revisable point stays and gives one finding per answer, a vanished PiT point gives a violation', async () => {
  const window = { since: t1, until: t1 + 3 * day }
  const [, two] = await story([daily(3), [{ t: t1 + day, v: 1 }]], [first, second], window)
  expect(two?.rows).toEqual([])
  expect(two?.result.violations).toEqual([])
  expect(two?.result.findings).toMatchObject([{ t: t1, kind: 'vanished', detail: { points: 2, last: t1 + 2 * day } }])
})

test('TIME 62, 63, 64: dated vintages are ordered by their dates, and a different value for the same date is a violation', async () => {
  const dated = (v: number, text: string): Offered => ({ t: t1, v, computed_at: at(text) })
  const [one, two, three] = await story(
    [
      [dated(3.8, '2024-03-05'), dated(3.7, '2024-05-11'), dated(3.8, '2024-03-20')],
      [dated(3.75, '2024-04-01'), dated(3.8, '2024-03-20'), dated(3.7, '2024-05-11')],
      [dated(3.9, '2024-03-05')],
    ],
    ['2024-06-01T00:00:00', '2024-06-02T00:00:00', '2024-06-03T00:00:00'],
    { told: true },
  )
  expect(one?.rows.toSorted()).toEqual([
    '0 3.7 05-11T00:00:00 06-01T00:00:00 provider 05-11T00:00:00',
    '0 3.8 03-05T00:00:00 06-01T00:00:00 provider 03-05T00:00:00',
  ])
  expect(one?.result.bodies[0]).toMatchObject({ added: 2, vintages: 1 })
  expect(two?.rows).toEqual(['0 3.75 04-01T00:00:00 06-02T00:00:00 provider 04-01T00:00:00'])
  expect(three?.rows).toEqual([])
  expect(three?.result.violations).toMatchObject([{ t: t1, kind: 'changed', stored: '3.8', offered: '3.9' }])
})

test('any answers: what is stored is each change of what was said, dated when it was seen', async () => {
  for (let seed = 0; seed < 2; seed++) {
    const random = randomOf(seed)
    const answers = Array.from({ length: 6 }, () =>
      Array.from({ length: 4 }, (_, n) => ({
        t: t1 + n * day,
        v: random() < 0.2 ? null : Math.floor(random() * 3),
      })).filter(() => random() < 0.8),
    ).map((points) => (points.length === 0 ? [{ t: t1, v: 1 }] : points))
    const commits = answers.map((_, n) => `2024-04-0${n + 1}T00:00:00`)
    const said = new Map<number, string>()
    const expected = answers.map((points, n) =>
      points.flatMap(({ t, v }) => {
        if (said.get(t) === String(v)) return []
        said.set(t, String(v))
        return [`${(t - t1) / day} ${v} 04-0${n + 1}T00:00:00`]
      }),
    )
    const told = await story(answers, commits)
    expect(told.map(({ rows }) => rows.map((row) => row.split(' ').slice(0, 3).join(' ')))).toEqual(expected)
  }
})
