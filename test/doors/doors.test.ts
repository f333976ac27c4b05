// @module-tag slow
import { describe, expect, test } from 'vitest'
import { need } from '../helpers/needs.ts'
import { sample } from '../helpers/tiers.ts'
import { commandLine, lookahead, session, stamp } from './command-line.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { fiveDays } from '../helpers/lakes/five-days.ts'
import { library, mcp, python, serve } from './programs.ts'
import { type Door, type DoorName, type Owed, owedAt, type Place, type Question, saidOf } from './question.ts'
import { asked, exceptions, questions } from './questions.ts'

/* One question, one answer: each is asked at every door that has a word for it, and rows, notes and refusals are the same. */

const place = lakeOfFile(fiveDays)

/** What is owed at a door; undefined where it cannot be asked there. */
function owedOf(door: DoorName, name: string, question: Question): Owed | undefined {
  const kinds: readonly string[] = asked[door]
  if (!kinds.includes(Object.keys(question.ask)[0] ?? '')) return undefined
  if (door === 'lookahead' && question.refused === undefined) return undefined
  const own = exceptions.flatMap(({ doors, owed }) =>
    doors.includes(door) && Object.hasOwn(owed, name) ? [owed[name]] : [],
  )
  return own.length === 0 ? question : (own[0] ?? undefined)
}

/** Asks all of them, and tells where it says something else than it owes. */
async function differing(door: Door, names: readonly string[]): Promise<object> {
  const found: [string, object][] = []
  for (const name of names) {
    const question = questions.get(name) as Question
    const owed = owedAt(door, owedOf(door.name, name, question) ?? {})
    const said = saidOf(await door.ask(question), question)
    const parts = (['refused', 'rows', 'notes', 'noted'] as const).filter((part) => part in said || part === 'refused')
    const wrong = parts.filter((part) => JSON.stringify(said[part]) !== JSON.stringify(owed[part]))
    if (wrong.length > 0)
      found.push([name, Object.fromEntries(wrong.map((part) => [part, { owed: owed[part], said: said[part] }]))])
  }
  return Object.fromEntries(found)
}

const namesAt = (door: DoorName): readonly string[] =>
  [...questions].flatMap(([name, question]) => (owedOf(door, name, question) === undefined ? [] : [name]))

describe('one question, one answer', () => {
  /*
   * The full tier asks every fifth question at each door, other ones at each; the fast tier many at two doors and a
   * dozen or less at the others. A stamp proves each answer, and so does `lookahead`, which takes longest.
   */
  const some = (name: DoorName, door: number, few: number): readonly string[] => {
    const names = namesAt(name)
    return sample([...names.slice(door), ...names.slice(0, door)], few, Math.ceil(names.length / 5))
  }
  test.each<readonly [DoorName, (place: Place) => Promise<Door>, door: number, few: number]>([
    ['command', commandLine, 0, 12],
    ['session', session, 1, 60],
    ['stamp', stamp, 2, 6],
    ['lookahead', lookahead, 3, 6],
    ['serve', serve, 4, 60],
    ['mcp', mcp, 5, 12],
    ['library', library, 6, 12],
  ])('an answer at %s is the expected one', async (name, open, number, few) => {
    await using door = await open(place)
    expect(await differing(door, some(name, number, few))).toEqual({})
  })
  test('an answer in Python is the expected one', async (context) => {
    await using door = await python(place, need(context, 'peers'))
    expect(await differing(door, some('python', 7, 12))).toEqual({})
  })
})

test('every exception is one: it names a question, and what is owed there is something else', () => {
  const vain = exceptions.flatMap(({ doors, owed }) =>
    Object.entries(owed).filter(([name, own]) => {
      const question = questions.get(name)
      return (
        question === undefined ||
        doors.length === 0 ||
        JSON.stringify(own) === JSON.stringify({ refused: question.refused })
      )
    }),
  )
  expect(vain).toEqual([])
  expect(questions.size).toBeGreaterThan(100)
})
